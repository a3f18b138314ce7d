// Package lookup finds payments and payouts by what people know of them: a reference, a
// receipt, an amount, a phone number, any part of a text, the person who collected. It keeps the indexes of phone
// numbers and of words, which know only marks of them, and takes a person's data out of rows.
//
// Its functions run in a transaction of store.
package lookup
