package api

import (
	"net/http"

	"till"
)

// The bounds, for tests of the whole.
const (
	MaxClientBodies  = maxClientBodies
	MaxClientAnswers = maxClientAnswers
)

// HeldBodies returns how many bytes of a client's request bodies are held.
func HeldBodies(h http.Handler, client till.ID) int64 { return h.(*server).bodies.HeldBy(client) }

// HeldAnswers returns how many bytes are held of what a client reads.
func HeldAnswers(h http.Handler, client till.ID) int64 { return h.(*server).answers.HeldBy(client) }
