package mpesa

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"till/provider"
	"till/provider/providertest"
	"till/provider/wire"
)

// BenchmarkCalls measures what the adapter adds to a call: compare with bare,
// the same call with nothing around it.
func BenchmarkCalls(b *testing.B) {
	answers := map[string][]byte{}
	for path, file := range map[string]string{"/mpesa/stkpush/v1/processrequest": "push_accepted", "/mpesa/stkpushquery/v1/query": "query_paid",
		"/mpesa/b2c/v3/paymentrequest": "payout_accepted", "/mpesa/transactionstatus/v1/query": "payout_asked"} {
		x := providertest.ReadExchange(&testing.T{}, "testdata/"+file+".txt")
		answers["/oauth/v1/generate"], answers[path] = x.Body(0), x.Body(1)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(answers[r.URL.Path]) }))
	defer server.Close()
	o := goldenOperator(b, goldenConfig(server.URL))
	client := wire.NewClient(0)
	header := http.Header{"Authorization": {"Bearer x"}, "Content-Type": contentType}
	body := []byte(providertest.ReadExchange(&testing.T{}, "testdata/push_accepted.txt").Requests[1])
	r := goldenRequest(b)
	paid := goldenQuery(b, goldenPush, mail(b, "push_paid"))
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"bare", func() error {
			_, err := client.Do(b.Context(), "POST", server.URL+"/mpesa/stkpush/v1/processrequest", header, body)
			return err
		}},
		{"push", func() error { _, err := o.Payments().Submit(b.Context(), r); return err }},
		{"push query", func() error { _, err := o.Payments().Check(b.Context(), paid); return err }},
		{"payout", func() error { _, err := o.Payouts().Submit(b.Context(), r); return err }},
		{"payout status", func() error {
			_, err := o.Payouts().Check(b.Context(), provider.Query{Reference: r.Reference, ID: r.ID, CallbackURL: goldenCallback})
			return err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
