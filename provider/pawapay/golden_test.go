package pawapay

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/providertest"
)

const goldenKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgFKbhfNZfpDsW43+0
+JjUr9K+bTeuxopu653+hBaXGA6hRANCAASohVhlUsKs9kcYeM/XsJNbT/4P0t/D
QSSOoXvEHgWK8DHOJzfS0wzgYX6FHoPGHvVnnRUYZ2V2SQNdkKdM2ehd
-----END PRIVATE KEY-----
`

var goldenNow = time.Date(2024, 5, 2, 15, 36, 45, 58799000, time.UTC)

func goldenRequest(t testing.TB) provider.Request {
	t.Helper()
	ref, err := till.ParseID("9d0b1f4e-6c1a-4f5b-8c3d-2e7a61f0c4b9")
	if err != nil {
		t.Fatal(err)
	}
	id, err := till.ParseID("019a7c3e-52d4-7a10-9b5e-0f1e2d3c4b5a")
	if err != nil {
		t.Fatal(err)
	}
	return provider.Request{ID: id, Reference: ref, Method: "mtn_momo", Country: "CG", Phone: "242063456789",
		Amount: till.Money{Minor: 1000, Currency: "XAF"}, Description: "Order 12345"}
}

// TestConversations holds what we say and what we make of the answers against
// the documented examples.
func TestConversations(t *testing.T) {
	t.Parallel()
	providertest.Replay(t, "testdata", func(t *testing.T, url string, _ provider.Tokens) (provider.Provider, provider.Provider) {
		c := Config{BaseURL: url, APIToken: testToken, Operations: []string{"payments", "payouts"}}
		if strings.HasSuffix(t.Name(), "signed") {
			c.SigningKey, c.SigningKeyID = goldenKey, "CUSTOMER_TEST_KEY"
		}
		o := newOperator(t, c, func() time.Time { return goldenNow })
		o.host = "api.sandbox.pawapay.io" // the server's own is another one each time
		return o.Payments(), o.Payouts()
	})
}

// TestSimulatorSpeaksAlike puts the golden requests to the simulator: its
// answers have the golden ones' status and shape.
func TestSimulatorSpeaksAlike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file   string
		phone  string // of the request that was made before, "" if none
		change func(*SimConfig)
		after  time.Duration
	}{
		{file: "deposit_accepted"},
		{file: "deposit_duplicate", phone: "242063456789"},
		{file: "deposit_unauthorised", change: func(c *SimConfig) { c.Token = "another" }},
		{file: "deposit_status_completed", phone: "242063456789", after: time.Minute},
		{file: "deposit_status_failed", phone: "242063456039", after: time.Minute},
		{file: "deposit_status_processing", phone: "242063456129", after: time.Minute},
		{file: "deposit_status_missing"},
		{file: "deposit_redirect"},
		{file: "deposit_code"},
		{file: "deposit_status_redirect", phone: "221773456129", after: time.Minute},
		{file: "payout_accepted"},
		{file: "payout_rejected", change: func(c *SimConfig) { c.OutOfFunds = true }},
		{file: "payout_status_completed", phone: "242063456789", after: time.Minute},
		{file: "payout_status_failed", phone: "242063456089", after: time.Minute},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			clock := providertest.NewClock()
			sc := SimConfig{Token: testToken, Now: clock.Now}
			if c.change != nil {
				c.change(&sc)
			}
			sim, err := NewSimulator(sc)
			if err != nil {
				t.Fatal(err)
			}
			defer sim.Close()
			if c.phone != "" {
				server := httptest.NewServer(sim)
				defer server.Close()
				o := newOperator(t, Config{BaseURL: server.URL, APIToken: testToken, Operations: []string{"payments", "payouts"}}, clock.Now)
				p := o.Payments()
				if strings.HasPrefix(c.file, "payout") {
					p = o.Payouts()
				}
				r := goldenRequest(t)
				if r.Phone = c.phone; strings.HasPrefix(c.phone, "221") {
					r.Method, r.Country, r.Amount, r.ReturnURL = "wave", "SN", till.Money{Minor: 99, Currency: "XOF"}, "https://shop.example/back?order=1042"
				}
				if got, err := p.Submit(t.Context(), r); err != nil || got.Outcome != provider.Accepted {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			clock.Advance(c.after)
			x := providertest.ReadExchange(t, "testdata/"+c.file+".txt")
			rec := httptest.NewRecorder()
			sim.ServeHTTP(rec, x.Request(0))
			if got, want := providertest.Shape(rec.Body.Bytes()), providertest.Shape(x.Body(0)); rec.Code != x.Status(0) || !slices.Equal(got, want) {
				t.Errorf("the simulator answers %d %s\n%q\nwant %d\n%q", rec.Code, rec.Body, got, x.Status(0), want)
			}
		})
	}
}

// TestGuide holds the guide's page against the configuration.
func TestGuide(t *testing.T) {
	t.Parallel()
	providertest.Guide(t, "../../docs/guide/operators-pawapay.md", "pawapay", Config{})
}
