// Package storetest runs a test on a real, migrated store and, when the test
// has ended, proves that it left the books right: every invariant that
// books.Verify knows holds.
//
//	storetest.Run(t, func(t *testing.T, s *store.Store) { … })
//
// There is no fake store: what a test shows must hold on the engines that
// money is kept in. A second engine is a second line in Run's table.
package storetest
