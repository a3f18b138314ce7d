package engine

import (
	"till"
	"till/provider"
	"till/store"
	"time"
)

// Instruction is what the engine must know of a subject to act on its step.
type Instruction struct {
	Ref         store.Ref
	Noun        till.Noun // what clients call it
	Connection  string
	Fingerprint string
	Request     provider.Request
	ExpiresAt   till.Time
	Window      time.Duration // how far a re-send moves ExpiresAt
	Final       bool
	Road        till.Road // of a payout

	// Row is the subject as it was when the instruction was made; nil if it is not kept.
	// With it, most answers can be recorded without reading the subject again.
	Row any
}

// Answer is the result of acting on a step.
type Answer struct {
	Ref        store.Ref
	Action     Action
	Connection string
	Reference  till.ID

	LeaseVersion int64 // the lease under which the call was made
	WakeSeq      int64 // the callbacks that were known before the call

	Started, Ended till.Time
	Result         provider.Result
	Err            error // non-nil: the outcome is unknown

	onlyFirstSend bool // at the claim, one send was all that was recorded
	cachedRow     any  // the subject as it was then; nil if that is not known

	// By, Evidence and Digest are set on a person's resolution.
	By, Evidence string
	Digest       []byte // SHA-256 of the evidence
	// UnlessDecided leaves a row alone that has been decided meanwhile, or for which money
	// came in that the person has not looked at, and its cases. Apply sets Unchanged then.
	UnlessDecided, Unchanged bool

	// RecordErr is set by Apply if the answer could not be recorded.
	RecordErr error
	storeErr  error // the database's error then, nil if it was not asked

}
