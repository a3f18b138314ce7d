package api

import (
	"cmp"
	"net/http"
	"slices"

	"till"
	"till/account"
	"till/internal/door"
)

// Reasons in the log that are not the code of the answer.
const (
	refusedUnknown = "unknown_key"
	refusedEnded   = "ended_key" // revoked or expired
	refusedAddress = "address_limited"
	refusedLookup  = "keys_waiting" // too many unknown keys wait for a lookup
	refusedToken   = "callback_token"
	refusedNetwork = "callback_network"
	refusedReaders = "readers_busy" // too many reads of the database
)

// warnReasons are the reasons that a person should know of; others are mistakes of
// programs.
var warnReasons = []string{
	refusedUnknown, refusedEnded, refusedAddress, refusedToken, refusedNetwork,
	string(till.CodeInsufficientScope), string(till.CodeRateLimited), string(till.CodeKeyInURL), string(till.CodeClientSuspended),
}

// warns reports whether a person should know of a refusal.
func warns(reason string, status int) bool {
	return status >= http.StatusInternalServerError || slices.Contains(warnReasons, reason)
}

// countedRefusals are the reasons that are counted, with a metric's words for them.
var countedRefusals = map[string]string{
	string(till.CodeMissingKey): "missing", refusedUnknown: "unknown", refusedEnded: "ended", refusedAddress: "address",
	string(till.CodeKeyInURL): "in_url", string(till.CodeClientSuspended): "suspended",
}

// countRefusal counts an answer that refuses a key or a client.
func (c *exchange) countRefusal(e *till.Error) {
	if c.reason == string(till.CodeRateLimited) {
		c.s.Meter.RateLimited()
	}
	word := countedRefusals[cmp.Or(c.reason, string(e.Code))]
	if c.reason == refusedUnknown {
		if _, _, _, whole := account.ParseKey(c.r.Header.Get("X-Api-Key")); !whole {
			word = "malformed"
		}
	}
	c.s.Meter.AuthRefused(word)
}

// logRefusal logs the exchange's answer, if it is an error without a log line yet.
func (c *exchange) logRefusal(e *till.Error, status int) {
	if c.logged {
		return
	}
	r := door.Refusal{Reason: cmp.Or(c.reason, string(e.Code)), From: c.peer(), Key: c.keyID, Status: status, Client: c.clientName(), Route: c.name()}
	r.Warn = warns(r.Reason, status)
	r.Proxy = r.Reason == refusedAddress && door.IgnoresForwarded(c.r, c.s.TrustedProxies)
	c.s.refusalLog.Add(r, c.id)
}

// refuse returns err for a request that is not admitted, and notes why.
func (c *exchange) refuse(reason string, err error) error {
	c.reason, c.mayDelay = reason, true
	return err
}
