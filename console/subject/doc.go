// Package subject says in words what a payment or a payout is: its state, its line in a
// list, what is going on and who is next, and the texts of its cases. It also holds what
// pages ask for money with: a market and its phones.
//
// The pages themselves are in the rooms.
package subject
