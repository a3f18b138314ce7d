// Package till is the vocabulary of a service that collects money from mobile
// money wallets. It knows no database, no network and no JSON library: only
// what the words mean and which rules hold between them.
//
// The nouns, each in the file of its name:
//
//	Payment      money asked from a customer's wallet, and how far that got
//	Method       a customer's kind of wallet (mtn_momo), whatever the road to it
//	Client       a tenant of the service; a Key opens its account
//	Fee          what we take of a client's money, flat and in basis points
//	Money        an exact amount in minor units of a currency; never a float
//	Charge, Tax  what the client says the amount is made of
//	Event        one thing that happened to a payment, told to its client
//	Endpoint     an address that a client's events are pushed to
//	Actor        who did something, as the audit log names them
//	Error        a refusal with a stable code, and the fields it is about
//	ID, Time     UUIDv7 and microseconds UTC, in the same order
//
// The verbs, each with one meaning wherever it appears in the code:
//
//	Create    a client asks for a payment
//	Submit    we ask the operator to collect it
//	Check     we ask the operator how it stands
//	Apply     we record an answer; the only way a payment changes
//	Settle    post the money that came in to the client's wallet
//	Suspend   post money that came in but cannot be attributed
//	Reverse   post that an operator took money back
//	Repay     post what a client owed from what it has now
//	Adjust    a person corrects a wallet
//	Wake      a callback says: look again
//	Claim     take a due step for a while (a lease)
//	Resolve   a person brings the operator's word
//	Reconcile hold an operator's statement against our books
//	Deliver   push an event to an endpoint until it has arrived
//	Replay    deliver again what was delivered or given up
//
// A Transaction is a line of a wallet's statement, as in the API. A database
// transaction is a Tx.
//
// Start reading at payment.go.
package till
