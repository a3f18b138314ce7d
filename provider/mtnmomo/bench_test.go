package mtnmomo

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
func calls(t testing.TB) (submit, check, bare func()) {
	o, err := New(Config{BaseURL: "http://127.0.0.1", TargetEnvironment: "mtncongo", APIUser: "u", APIKey: "k", CollectionKey: "c"}, provider.Deps{Tokens: oneToken{}})
	if err != nil {
		t.Fatal(err)
	}
	p := o.payments
	r := provider.Request{Phone: "242061234567", Amount: till.Money{Minor: 2500, Currency: "XAF"}, Description: "Commande n° 123"}
	accepted := wire.ClientWithTransport(canned{202, ""})
	state := wire.ClientWithTransport(canned{200, `{"financialTransactionId":"1927264368","externalId":"00000000-0000-0000-0000-000000000000","amount":"2500","currency":"XAF","payer":{"partyIdType":"MSISDN","partyId":"242061234567"},"payerMessage":"x","payeeNote":"x","status":"SUCCESSFUL"}`})
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
	alone := &http.Client{Transport: canned{202, ""}}
	bare = func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/collection/v1_0/requesttopay", strings.NewReader("{}"))
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
	return submit, check, bare
}

// maxAllocs is what an adapter may add to a call.
const maxAllocs = 60

func TestAllocations(t *testing.T) {
	submit, check, bare := calls(t)
	alone := testing.AllocsPerRun(200, bare)
	for name, call := range map[string]func(){"submit": submit, "check": check} {
		if n := testing.AllocsPerRun(200, call) - alone; n > maxAllocs {
			t.Errorf("%s adds %v allocations to a call, want at most %d", name, n, maxAllocs)
		} else {
			t.Logf("%s adds %v allocations to the %v of net/http", name, n, alone)
		}
	}
}

func BenchmarkCalls(b *testing.B) {
	submit, check, bare := calls(b)
	for _, c := range []struct {
		name string
		call func()
	}{{"submit", submit}, {"check", check}, {"net-http alone", bare}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.call()
			}
		})
	}
}
