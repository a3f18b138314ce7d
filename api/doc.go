// Package api is the HTTP JSON face of the service. It decodes, authenticates,
// calls the package that owns the noun, and encodes; it decides nothing about
// money.
//
// Every request passes the same gates, in this order, and the first that
// refuses answers:
//
//	framing ─ request id ─ key in the URL ─ route and verb ─ key ─ suspended ─ scope
//	  ─ rate limit ─ query ─ content type ─ body ─ handler
//
// Every answer carries X-Request-Id and Api-Version; every refusal, net/http's
// own included (see Guard), is application/problem+json and repeats nothing of
// what was sent. What is refused before the handler has changed nothing.
//
// Start reading at routes.go, which is every route; then middleware.go, which
// is the order above; then payments.go.
package api
