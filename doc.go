// Package till is the glossary of a service that collects money from mobile
// money wallets and pays it out. It knows no database, no network and no JSON
// library: only what the words mean and which rules hold between them.
//
// Money and its people:
//
//	Client        a tenant of the service, with wallets of its own
//	Profile       how a client is shown to people: zone, country, receipts
//	Key           what a client's program authenticates with; it has scopes
//	Payment       money requested from a customer's wallet, and how far that got
//	Payout        money sent to a recipient's wallet from a client's wallet
//	Refund        a payout that names the payment it gives back, to who paid it
//	Road          how a refund's money goes back: as a transfer, or by the operator's refund call
//	Subject       a payment or a payout, where code serves both; SubjectKind says which
//	Noun          what clients call a subject: a payment, a payout or a refund
//	Method        a kind of wallet (mtn_momo), whatever the connection to it
//	Money         an exact amount in minor units of a currency; never a float
//	Charge, Tax   what the client says the amount is made of
//	Fee           what we take from a client's money, flat and in basis points
//	Reserve       money of a wallet that is set aside for open payouts
//	Transaction   one line of a wallet's statement; a database transaction is a Tx
//	Adjustment    a person's correction of a wallet
//
// Calls to operators:
//
//	Operator      the company that keeps customers' wallets
//	Connection    one account at an operator, as the configuration names it
//	Route         the connection that takes a mode's payments of a method, country and currency
//	Fingerprint   which account a connection is, so that a step is not sent to another one
//	Reference     our id for a request at the operator; the same for each retry
//	Receipt       the operator's id for money that moved
//	Step          what is to be done next for a subject, and when
//	Lane          the queue of steps for one connection and operation
//	Lease         the right to work on a step for a limited time
//	Slot          room for one call to an operator at a time, within an instance
//	Window        how long a customer may approve, or a payout may be sent
//	Attempt       one call to an operator, with its outcome
//	Answer        what an operator said about a subject
//	Callback      an operator's message that something changed; never proof
//	Circuit breaker     stops new payments to an operator that fails
//	Rate limit budget   the calls that an operator allows, shared by all instances
//	Hold          what keeps payouts from being sent: a person, a restore, a suspension
//
// Telling clients:
//
//	Event         one change of a subject or endpoint, numbered per client
//	Endpoint      an address that a client's events are posted to
//	Delivery      the sending of one event to one endpoint
//	Dispatcher    the part that delivers events
//	Hint          a notice that a client's event log has grown; may be lost
//	Subscription  what receives hints
//
// Watching:
//
//	Trace         what happened to one subject; its id is the subject's
//	Span          one thing in a trace, with its beginning and end
//
// Keeping the books:
//
//	Head          the client's row that orders its writes
//	Tally         a count within one hour, changed in the commit it counts
//	Counter       a count per hour, day, month or in total, made from tallies
//	Sum           what the rows of a tally or counter add up to
//	Audit log     who did what, per client, in a chain of hashes
//	Case          something that a person has to check
//	Journal       a sealed record of each create outside of the database, for a restore
//	Level         which new things may be written, so that the release before can still read all
//	Stray         money that names us and matches no subject
//	Statement     a wallet's transactions, or an operator's list of movements
//	Actor         who did something, as the audit log names them
//	Error         a rejection with a stable code and the fields it is about
//	Generation    one of the keys of the installation's secret; the first is also its root, which never changes
//	ID, Time      UUIDv7 and microseconds UTC, in the same order
//
// People:
//
//	Person        somebody who signs in to the console
//	House         the operator of this installation; its own client id is zero
//	Role          what a person is for a client or for the installation
//	Membership    a person's role with one client, or with the installation
//	Invitation    a link that gives a role, or lets a person back in
//	Session       a person who is signed in, on one device
//	Counter       where a person asks a customer for a payment
//	Note          what a person writes about a payment or payout
//	Proof         showing again who one is, before money, keys or people
//
// The verbs:
//
//	Create        a client requests a payment or payout; Intake accepts it
//	Claim         take a due step for the time of a lease
//	Submit        send a subject to the operator
//	Check         read a subject's state from the operator
//	Apply         record an answer; the only way a status changes, besides Cancel
//	Cancel        withdraw a payout that was not sent
//	Settle        post collected money to the client's wallet
//	Suspend       post money that came in but cannot be attributed
//	Reverse       post that an operator took money back
//	Repay         post what a client owed from what it has now
//	Adjust        a person corrects a wallet
//	Resolve       a person brings the operator's decision, with evidence
//	Reconcile     compare an operator's statement with our books
//	Deliver       post an event to an endpoint until it answers 2xx
//	Replay        answer a repeated create again, or deliver an event again
//	Wake          make a loop run now instead of at its next interval, or (WakeStep) a step due because of a callback
//
// Start reading at payment.go.
package till
