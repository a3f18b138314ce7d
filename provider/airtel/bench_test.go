package airtel

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/wire"
)

// canned answers every call at once.
type canned struct {
	status int
	body   string
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
}

type oneToken struct{}

func (oneToken) Token(context.Context, string, string, func(context.Context) (string, time.Duration, error)) (string, error) {
	return "token", nil
}

// calls are a Submit and a Check without a network, and what net/http alone
// costs for the like.
func calls(t testing.TB) (submit, check, pay, bare func()) {
	o, err := New(Config{BaseURL: "http://127.0.0.1", Country: "CG", Currency: "XAF", ClientID: "u", ClientSecret: "k", Operations: []string{"payments", "payouts"}, PIN: "1234", PINPublicKey: testKey}, provider.Deps{Tokens: oneToken{}})
	if err != nil {
		t.Fatal(err)
	}
	p, out := o.payments, o.payouts
	r := provider.Request{Phone: "242051234567", Amount: till.Money{Minor: 2500, Currency: "XAF"}, Description: "Commande n° 123"}
	accepted := wire.ClientWithTransport(canned{200, `{"data":{"transaction":{"id":"x","status":"SUCCESS"}},"status":{"code":"200","message":"SUCCESS","result_code":"ESB000010","response_code":"DP00800001006","success":true}}`})
	state := wire.ClientWithTransport(canned{200, `{"data":{"transaction":{"airtel_money_id":"133410367531","id":"00000000000000000000000000000000","message":"Your transaction has been successfully processed","status":"TS"}},"status":{"response_code":"DP00800001001","code":"200","success":true,"result_code":"ESB000010","message":"SUCCESS"}}`})
	submit = func() {
		p.client = accepted
		if _, err := p.Submit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	check = func() {
		p.client = state
		if _, err := p.Check(t.Context(), provider.Query{Reference: r.Reference, Amount: r.Amount}); err != nil {
			t.Fatal(err)
		}
	}
	pay = func() {
		out.client = accepted
		if _, err := out.Submit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	alone := &http.Client{Transport: canned{202, ""}}
	bare = func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/merchant/v1/payments/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := alone.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.ReadAll(res.Body)
		res.Body.Close()
	}
	return submit, check, pay, bare
}

// testKey is a public key whose private half nobody has.
const testKey = "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDFVr+TX6SXN3SB3kEFhLWtiYapwCmgrQ2QE/4FwrgSVN0GSFQeVVz8HTbIS57LOrSyvNSop5xCn6O1+rkSbd/iPRZvLOkGVVdDrdieNrbTfNhLGfPZEkzTIfUU0YqydLypdYrtcBOzDDETSrGGgi5i3YYZQFWeqouSkyORzZETlQIDAQAB"

// maxAllocs is what an adapter may add to a call.
const maxAllocs = 60

func TestAllocations(t *testing.T) {
	submit, check, pay, bare := calls(t)
	alone := testing.AllocsPerRun(200, bare)
	for name, call := range map[string]func(){"submit": submit, "check": check, "payout": pay} {
		if n := testing.AllocsPerRun(200, call) - alone; n > maxAllocs {
			t.Errorf("%s adds %v allocations to a call, want at most %d", name, n, maxAllocs)
		} else {
			t.Logf("%s adds %v allocations to the %v of net/http", name, n, alone)
		}
	}
}

func BenchmarkCalls(b *testing.B) {
	submit, check, pay, bare := calls(b)
	for _, c := range []struct {
		name string
		call func()
	}{{"submit", submit}, {"check", check}, {"payout", pay}, {"net-http alone", bare}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.call()
			}
		})
	}
}
