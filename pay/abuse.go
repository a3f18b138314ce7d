package pay

import (
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"till"
	"till/internal/door"
	"till/internal/limit"
)

// What one instance counts of asks, in memory. Of an address it counts only to look twice and to
// tell: a whole town may be behind one. Of a merchant it counts so that a rush on one page leaves
// room for the others.
const (
	crowdAsks    = 20 // of one merchant, at once; then one more every crowdRefill
	crowdRefill  = time.Second / crowdAsks
	sourceAsks   = 60 // from one address, at once; then one more every sourceRefill
	sourceRefill = 10 * time.Minute / sourceAsks
)

// rush counts asks.
type rush struct {
	crowds   *limit.Buckets[till.ID]
	sources  *limit.Buckets[netip.Prefix]
	refusals *door.Log
}

func newRush(c *Config) *rush {
	return &rush{limit.NewBuckets[till.ID](crowdAsks, crowdRefill), limit.NewBuckets[netip.Prefix](sourceAsks, sourceRefill), door.NewLog(c.Log)}
}

// fromCrowdedSource reports whether so many asks came from the address lately that each number is
// shown whole before it is asked, also one that the shop named. No ask is ever refused for that.
func (v *visit) fromCrowdedSource() bool {
	_, empty := v.p.rush.sources.Empty(v.network(), v.now())
	return empty
}

// counted counts an ask from the caller's address, and logs when there are many.
func (v *visit) counted() {
	rush, from, now := v.p.rush, v.network(), v.now()
	if _, ok := rush.sources.Take(from, now); ok && rush.sources.Left(from, now) < 1 {
		v.p.c.Log.Warn("many asks came from one address", "from", from.String(), "asks", sourceAsks, "client", v.ref().Client.String())
	}
}

// crowded reports whether so many are paying the merchant on this instance that this ask has to
// come again, and says how long to wait.
func (v *visit) crowded() bool {
	client := v.ref().Client
	wait, ok := v.p.rush.crowds.Take(client, v.now())
	if ok {
		return false
	}
	v.p.rush.refusals.Add(door.Refusal{Reason: "pages_crowded", From: door.Peer(v.r, v.p.c.TrustedProxies), Status: http.StatusServiceUnavailable, Client: client.String(),
		Route: "POST " + Prefix + "{token}"}, "")
	v.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	return true
}

// crowd answers an ask that has to come again: the form, with what was typed. Nothing was sent for
// it, and to press again is right.
func (v *visit) crowd(typed *fields) error {
	typed.Wrong = v.words.T("wrong.crowd")
	return v.render(http.StatusServiceUnavailable, typed)
}
