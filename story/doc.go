// Package story shows what happened to one payment or payout, and finds it.
//
//	ReadStory     everything that is stored of it, and its timeline
//	Explain       what is going on with it now, as a code and values
//	AddNote       what a person writes on it
//	FindPayments  by phone, reference, amount or receipt; FindPayouts, FindLines
//
// It decides nothing and, but for notes, writes nothing. Start reading at story.go.
package story
