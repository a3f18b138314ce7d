// Package console serves the pages for people: a merchant's staff, and the staff of the
// installation.
//
// It promises:
//
//   - A page shows a client's rows only to somebody with a role there, or to a
//     role of the house that may view it; any other client is 404.
//   - A page calls the functions that the API and the commands call. No handler
//     decides about money, and none has SQL.
//   - Nothing that others wrote becomes markup or script: html/template escapes
//     it, and the policy in shell/headers.go forbids what would slip through.
//   - Pages read and act without script. Live updates are hints.
//
// This package joins the rooms: the table of routes says of each page its path, who it
// is for, permission and fresh proof. What is around every page is in shell. A page
// is one file of Go in its room, one of page/*.html and its words in words/*.toml.
//
// Start reading at routes.go, then money/routes.go, shell/visit.go, money/payments.go.
package console
