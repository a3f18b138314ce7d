// Package checkouts has the SQL of orders that are paid on a page: checkouts, their asks, links, the
// addresses of pages, and how far each client's event log was followed for them.
//
// A row changes only while its client's head is locked. Payments know nothing of checkouts: an
// ask finds its payment by its idempotency key, which is derived.
package checkouts
