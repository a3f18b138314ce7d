package payout

import (
	"slices"
	"testing"

	"till"
	"till/engine"
)

// The road of a refund, rule by rule.
func TestRoad(t *testing.T) {
	t.Parallel()
	p := &till.Payment{Connection: "mtn", Fingerprint: "f1"}
	has := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	origins := func(o engine.Origin) map[string]engine.Origin { return map[string]engine.Origin{"mtn": o, "other": {}} }
	own := engine.Origin{Fingerprint: "f1", Refunds: engine.RefundByOperator}
	known := origins(own)
	with := func(change func(*engine.Origin)) map[string]engine.Origin {
		o := own
		change(&o)
		return origins(o)
	}
	for _, c := range []struct {
		name       string
		here       here
		connection string
		road       till.Road
		code       till.Code
	}{
		{"its own refund call", here{origins: known, refunds: has("mtn"), serves: has("mtn", "other"), route: []string{"other"}}, "mtn", till.RoadRefund, ""},
		{"of another account by now", here{origins: with(func(o *engine.Origin) { o.Fingerprint = "f2" }), refunds: has("mtn"), serves: has("mtn", "other"), route: []string{"other"}}, "mtn", till.RoadTransfer, ""},
		{"its own payouts, not the first of the route", here{origins: known, refunds: has("other"), serves: has("mtn", "other"), route: []string{"other", "mtn"}}, "mtn", till.RoadTransfer, ""},
		{"the route of payouts", here{origins: known, refunds: has(), serves: has("other", "third"), route: []string{"other", "third"}}, "other", till.RoadTransfer, ""},
		{"none", here{origins: known, refunds: has(), serves: has(), route: nil}, "", "", till.CodeRefundNotPossible},
		{"its own refund call, and the configuration says payouts", here{origins: with(func(o *engine.Origin) { o.Refunds = engine.RefundByPayout }), refunds: has("mtn"), serves: has("mtn")}, "mtn", till.RoadTransfer, ""},
		{"payouts, and it has none", here{origins: with(func(o *engine.Origin) { o.Refunds = engine.RefundByPayout }), refunds: has("mtn"), serves: has("other"), route: []string{"other"}}, "other", till.RoadTransfer, ""},
		{"off", here{origins: with(func(o *engine.Origin) { o.Refunds = engine.RefundNever }), refunds: has("mtn"), serves: has("mtn", "other"), route: []string{"other"}}, "", "", till.CodeRefundNotPossible},
		{"nobody knows who paid", here{origins: with(func(o *engine.Origin) { o.PayerUnknown = true }), refunds: has(), serves: has("mtn"), route: []string{"mtn"}}, "", "", till.CodeRefundNotPossible},
		{"nobody knows who paid, and the operator does", here{origins: with(func(o *engine.Origin) { o.PayerUnknown = true }), refunds: has("mtn"), serves: has()}, "mtn", till.RoadRefund, ""},
		{"an instance without the connection", here{origins: map[string]engine.Origin{"other": {}}, refunds: has("mtn"), serves: has("mtn"), route: []string{"mtn"}}, "", "", till.CodeServiceUnavailable},
		{"a connection that is gone", here{retired: map[string]bool{"mtn": true}, refunds: has(), serves: has("other"), route: []string{"other"}}, "other", till.RoadTransfer, ""},
	} {
		connection, road, err := c.here.choose(p)
		if connection != c.connection || road != c.road || till.ErrorCode(err) != c.code {
			t.Errorf("%s: %q by %q, %v", c.name, connection, road, err)
		}
	}
}
