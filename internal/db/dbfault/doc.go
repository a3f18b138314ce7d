// Package dbfault is a [db.Engine] around another one that counts what reaches the database
// and lets any of it fail: a transaction that begins, each batch, a commit and the answer
// to it, each statement of a migration. It is for tests.
//
// What fails has failed for certain, as a server's errors do: before an error nothing of
// the step has happened, the transaction is rolled back, and every further step of it fails
// too. Only the answer to a commit that happened can be lost. An instance that has crashed
// reaches the database no more; what it had not committed is gone.
//
// A Plan numbers the effects of everything that takes part in one run, a network too, so
// that a test can run a story once to count them and then again with the n-th failed.
// Start reading at plan.go.
package dbfault
