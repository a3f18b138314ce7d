// Package storetest is the suite that every till.Store passes. A store of your
// own needs one thing: a way to open it empty.
package storetest
