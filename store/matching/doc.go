// Package matching has the SQL by which what an operator says is matched with our rows: the
// rows that a statement is compared with, and the strays, which match none.
//
// Its functions run in a transaction of store. What a difference means, package reconcile
// decides, and what becomes of a stray, engine and books.
package matching
