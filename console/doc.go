// Package console serves the pages that people look at: a merchant's staff, and
// whoever runs the installation.
//
// It promises:
//
//   - A page shows a client's rows only to somebody with a role there, or to a
//     role of the house that may look; any other client is 404.
//   - A page calls the functions that the API and the commands call. No handler
//     decides about money, and none has SQL.
//   - Nothing that others wrote becomes markup or script: html/template escapes
//     it, and the policy in headers.go forbids what would slip through.
//   - Pages read and act without script. Live updates are hints.
//
// Routes are one table (routes.go): path, who it is for, permission, fresh
// proof. A page is one file of Go, one of page/*.html and its words in
// words/*.toml.
//
// Start reading at routes.go, then visit.go, then payments.go.
package console
