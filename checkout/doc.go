// Package checkout is about orders that a customer pays on a page: it makes them, asks for their
// payments, and says who may be named on the page, what its address is, and what it shows at
// each moment.
//
// A page has no rule of its own about money: an ask is an ordinary payment, made by
// collect.Create under a key that derives from the checkout's own. Somebody who posts a page
// twice, in two tabs or after a restore, names the same payment. An ask is made in two commits:
// the first writes down what was typed, the second makes the payment. A new ask follows only one
// that has ended without money, on the operator's word. Nobody who settles a payment knows of
// checkouts.
//
// A link is an address that anybody can pay on. It stores nothing until somebody pays; then the
// form's nonce names the checkout that is theirs, and it goes on as any other.
//
// Start reading at ask.go, and at face.go for what a page shows.
package checkout
