// Package api is the HTTP JSON interface of the service. It decodes,
// authenticates, calls the package that owns the noun, and encodes. It decides
// nothing about money.
//
// Every request passes the same checks in this order. The first check that fails
// answers:
//
//	framing ─ request id ─ key in the URL ─ route and method ─ key ─ suspended ─ scope
//	  ─ rate limit ─ query ─ content type ─ body ─ handler
//
// Every answer has X-Request-Id and Api-Version. Every error is
// application/problem+json and repeats nothing of the request; Guard converts the
// errors that net/http writes itself. A request that fails before its handler has
// changed nothing.
//
// Start reading at routes.go, which lists every route; then middleware.go, which
// is the order above; then payments.go.
package api
