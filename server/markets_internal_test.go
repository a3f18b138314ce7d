package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/config"
	"till/operators"
	"till/provider/pawapay"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// marketServer is a service whose live client's payments go to a simulated pawaPay.
type marketServer struct {
	*Server
	t   *testing.T
	sim *pawapay.Simulator
}

func newMarketServer(t *testing.T) *marketServer {
	t.Helper()
	dir := t.TempDir()
	sim, err := pawapay.NewSimulator(pawapay.SimConfig{Decide: undecided})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	side := httptest.NewServer(sim)
	t.Cleanup(side.Close)
	file := filepath.Join(dir, "till.toml")
	text := `[[connection]]
name = "pawapay"
operator = "pawapay"
base_url = "` + side.URL + `"
[connection.pawapay]
api_token_file = "token"
operations = ["payments", "payouts"]
[[route]]
method = "mtn_momo"
countries = ["CG", "CM"]
connections = ["pawapay"]
`
	for name, content := range map[string]string{file: text, filepath.Join(dir, "token"): pawapay.SimToken + "\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	storetest.NewFile(t, filepath.Join(dir, "till.db"))
	c := Config{Database: filepath.Join(dir, "till.db"), Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", LiveDemoFile: filepath.Join(dir, "live.json"), Log: slog.New(slog.DiscardHandler)}
	if c.Operators, err = config.Load(file, operators.Builtin.Options()); err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return &marketServer{s, t, sim}
}

// do calls the API as the live client.
func (m *marketServer) do(method, path, body string) (int, string) {
	m.t.Helper()
	r, err := http.NewRequestWithContext(m.t.Context(), method, m.BaseURL()+path, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", m.LiveDemo().APIKey)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		m.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return a.StatusCode, string(text) + " Retry-After: " + a.Header.Get("Retry-After")
}

// create asks a customer of MTN, and returns the status and what stands in the answer.
func (m *marketServer) create(key, country, value string) (int, string) {
	m.t.Helper()
	phone := map[string]string{"CG": "242061234129", "CM": "237671234129"}[country]
	return m.do(http.MethodPost, "/payments", `{"method":"mtn_momo","country":"`+country+`","amount":{"value":"`+value+`","currency":"XAF"},
		"idempotency_key":"00000000-0000-4000-8000-0000000000`+key+`","customer":{"phone":"`+phone+`"}}`)
}

// market returns what GET /payment-methods says of MTN in a country.
func (m *marketServer) market(country string) (out struct {
	Code, Status, Flow   string
	Min                  string `json:"min_amount"`
	Max                  string `json:"max_amount"`
	Dial                 *string
	Supports             struct{ Payments bool }
	MethodStatus, Window string
}) {
	m.t.Helper()
	status, text := m.do(http.MethodGet, "/payment-methods", "")
	var list struct {
		Items []struct {
			Code, Status string
			Countries    []json.RawMessage
		}
	}
	body, _, _ := strings.Cut(text, " Retry-After: ")
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK || len(list.Items) != 1 {
		m.t.Fatal(status, text, err)
	}
	for _, raw := range list.Items[0].Countries {
		if err := json.Unmarshal(raw, &out); err != nil {
			m.t.Fatal(err)
		}
		if out.MethodStatus = list.Items[0].Status; out.Code == country {
			return out
		}
	}
	m.t.Fatalf("%s is not offered: %s", country, text)
	return out
}

// says changes what the operator says, and lets the service read it.
func (m *marketServer) says(texts ...string) {
	m.t.Helper()
	ctx := m.t.Context()
	err := m.sim.SetMarkets(texts)
	if err == nil {
		err = m.store.Update(ctx, func(tx *store.Tx) error { return admin.DeleteMarkets(ctx, tx, "pawapay") }) // as if an hour had passed
	}
	if err == nil {
		_, err = m.markets.Read(ctx)
	}
	if err == nil {
		err = m.markets.Load(ctx)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// A running service asks the operator what the account may do and offers no more than that.
// What was accepted before goes its way.
func TestAnOperatorClosesAMarket(t *testing.T) {
	t.Parallel()
	m := newMarketServer(t)
	for m.markets.Of("pawapay") == nil { // the turn of the running service reads it
		if err := m.markets.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if k := m.market("CG"); k.Status != "operational" || k.Min != "100" || k.Max != "2000000" || k.Flow != "push" || k.Dial == nil || *k.Dial != "*105#" {
		t.Errorf("at first: %+v", k)
	}
	status, first := m.create("01", "CG", "5000")
	if status != http.StatusAccepted {
		t.Fatal(status, first)
	}

	m.says("MTN_MOMO_COG DEPOSIT CLOSED", "MTN_MOMO_CMR DEPOSIT 500-100000")
	if k := m.market("CG"); k.Status != "closed" || k.MethodStatus != "operational" || !k.Supports.Payments {
		t.Errorf("closed: %+v", k)
	}
	if k := m.market("CM"); k.Status != "operational" || k.Min != "500" || k.Max != "100000" {
		t.Errorf("narrowed: %+v", k)
	}
	if status, text := m.create("02", "CG", "5000"); status != http.StatusServiceUnavailable || !strings.Contains(text, "method_unavailable") || !strings.HasSuffix(text, "Retry-After: 300") {
		t.Errorf("a new payment: %d %s", status, text)
	}
	if status, text := m.create("01", "CG", "5000"); status != http.StatusOK && status != http.StatusAccepted || text[:60] != first[:60] {
		t.Errorf("a key that made a payment before: %d %s", status, text)
	}
	for key, want := range map[string]int{"11 499": 422, "12 500": 202, "13 100000": 202, "14 100001": 422} {
		key, value, _ := strings.Cut(key, " ")
		if status, text := m.create(key, "CM", value); status != want || want == 422 && (!strings.Contains(text, "amount_out_of_bounds") || !strings.Contains(text, "between 500 and 100000")) {
			t.Errorf("%s in Cameroon: %d %s", value, status, text)
		}
	}

	m.says("MTN_MOMO_COG DEPOSIT DELAYED", "MTN_MOMO_CMR DEPOSIT LACKING", "MTN_MOMO_CMR PAYOUT LACKING", "MTN_MOMO_CMR REFUND LACKING")
	for _, country := range []string{"CG", "CM"} {
		if k := m.market(country); k.Status != "closed" || k.MethodStatus != "closed" {
			t.Errorf("delayed, or lacking: %+v", k)
		}
		if status, text := m.create("03", country, "5000"); status != http.StatusServiceUnavailable {
			t.Errorf("a new payment in %s: %d %s", country, status, text)
		}
	}

	m.says()
	if status, text := m.create("02", "CG", "5000"); status != http.StatusAccepted {
		t.Errorf("open again: %d %s", status, text)
	}
}
