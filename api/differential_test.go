package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"till/store"
	"till/store/storetest"
)

// TestEnginesAnswerAlike sends generated scripts of requests, good ones and
// bad ones, to a service on each engine, and compares the answers.
// TILL_SCRIPTS says how many.
func TestEnginesAnswerAlike(t *testing.T) {
	engines := storetest.Engines()
	if len(engines) < 2 {
		t.Skip("TILL_TEST_POSTGRES_URL names no server; make test starts one")
	}
	scripts := 50 // make soak plays a thousand
	if n, err := strconv.Atoi(os.Getenv("TILL_SCRIPTS")); err == nil {
		scripts = n
	}
	const pairs = 2
	for pair := range pairs {
		t.Run(strconv.Itoa(pair), func(t *testing.T) {
			t.Parallel()
			databases := []store.Config{engines[0].Config(t), engines[1].Config(t)}
			synctest.Test(t, func(t *testing.T) {
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				tellers := make([]*teller, len(databases))
				for i, d := range databases {
					tellers[i] = newTeller(t, options{database: d})
				}
				statuses := map[string]int{}
				for script := range scripts / pairs {
					g := &generator{rand.New(rand.NewPCG(seed, uint64(script))), script}
					if !alike(t, g, tellers, statuses) {
						break
					}
				}
				t.Logf("%d scripts; answers that were alike, by status: %v", scripts/pairs, statuses)
				for _, s := range tellers {
					s.world.stop()
				}
			})
		})
	}
}

// namedTime is a time in an answer. What happens to two clients in one moment
// happens in any order, a microsecond apart.
var namedTime = regexp.MustCompile(`\{time[0-9]+\}`)

// alike runs one script on every service and reports whether all answered the
// same. It counts the answers by their status.
func alike(t *testing.T, g *generator, tellers []*teller, statuses map[string]int) bool {
	for range 4 + g.IntN(5) {
		// A microsecond more each time, so that no two payments come, or are
		// asked about, in the same moment: their order would be anybody's guess.
		pause := time.Millisecond + time.Microsecond
		if g.IntN(4) == 0 {
			pause += time.Duration(g.IntN(2000)) * time.Millisecond
		}
		time.Sleep(pause)
		synctest.Wait()
		key, method, target, body := g.request()
		var answers []string
		for _, s := range tellers {
			r := httptest.NewRequest(method, s.names.expand(target), strings.NewReader(body))
			if body == "" {
				r.Body = http.NoBody
			} else {
				r.Header.Set("Content-Type", "application/json")
			}
			r.Header.Set("X-Api-Key", s.world.keys[key])
			s.send(r)
			answers = append(answers, namedTime.ReplaceAllString(s.answer, "{time}"))
		}
		if d := cmp.Diff(answers[0], answers[1]); d != "" {
			t.Errorf("script %d: %s %s\n%s\n(-sqlite +postgres)\n%s", g.script, method, target, body, d)
			return false
		}
		statuses[status(answers[0])]++
	}
	return true
}

// status returns the status of an answer, which begins with it.
func status(answer string) string {
	first, _, _ := strings.Cut(answer, "\n")
	return first
}

// generator draws requests, of which about half are wrong in some way.
type generator struct {
	*rand.Rand
	script int
}

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g *generator) request() (key, method, target, body string) {
	key = g.pick("test", "test", "test", "test", "test", "test", "other", "other", "reader", "writer")
	switch g.IntN(8) {
	case 0, 1, 2:
		return key, http.MethodPost, "/v1/payments", g.body()
	case 3:
		return key, http.MethodGet, "/v1/payments/" + g.pick("{id1}", "{id2}", "{id3}", "nonsense", "00000000-0000-0000-0000-000000000000"), ""
	case 4:
		return key, http.MethodGet, "/v1/transactions?" + g.query("type=collection", "currency=XAF", "currency=KES", "reference=ORDER"), ""
	case 5:
		return key, http.MethodGet, g.pick("/v1/payment-methods", "/v1/api-keys?x=1", "/v1/nowhere", "/v1/payments/{id1}/attempts?y"), ""
	}
	return key, http.MethodGet, "/v1/payments?" + g.query("status=success", "status=failed", "status=pending", "method=mtn_momo", "method=nobody",
		"reference=ORDER", "reference=%00", "reference=%ED%A0%80", "idempotency_key=x", "from_date=2000-01-01T00:00:01Z", "to_date=2000-01-01T00:00:05.000001%2B00:00",
		"from_date=1969-01-01T00:00:00Z", "to_date=9999-12-31T23:59:59Z", "from_date=tomorrow"), ""
}

func (g *generator) query(filters ...string) string {
	parts := []string{g.pick("limit=1", "limit=7", "limit=200", "limit=0", "limit=50"), g.pick("offset=0", "offset=3", "offset=100000", "offset=-1"), g.pick("order=asc", "order=desc")}
	for range g.IntN(3) {
		parts = append(parts, g.pick(filters...))
	}
	return strings.Join(parts, "&")
}

// body draws a create body: half of them are good, and most of the others
// are wrong in one place.
func (g *generator) body() string {
	wrong := make([]bool, 9)
	if g.IntN(2) == 0 {
		wrong[g.IntN(len(wrong))] = true
		wrong[g.IntN(len(wrong))] = true // often the same one
	}
	member := func(i int, good []string, bad ...string) string {
		if wrong[i] {
			return g.pick(bad...)
		}
		return g.pick(good...)
	}
	body := fmt.Sprintf(`{"method":%s,"country":%s,"amount":{"value":%s,"currency":"XAF"},"idempotency_key":%s,"customer":{"phone":"24206412%s"},"reference":%s,"metadata":%s,"charge":%s,"tax":%s}`,
		member(0, []string{`"mtn_momo"`}, `"airtel_money"`, `"mpesa"`, `"none"`, `null`),
		member(1, []string{`"CG"`}, `"KE"`, `null`, `"cg"`),
		member(2, []string{`"5000"`, `"5000"`, `"3000"`}, `"007"`, `"0"`, `"999999999999999"`, `5000`),
		member(3, []string{g.key(), g.key(), strings.ToUpper(g.key())}, `"x"`, `null`, `"{`+strings.Trim(g.key(), `"`)+`}"`),
		member(4, []string{"9901", "0002", "0005", "0017", "0003", "0000", "0013"}, "990", "99x1", "99012"),
		member(5, []string{`null`, `"ORDER"`, `"é☃"`}, `"\u0000"`, `"\ud800"`, `""`, `7`, `"`+strings.Repeat("ab", 70)+`"`),
		member(6, []string{`null`, `{}`, `{"a":1.50,"b":[null,{"c":"\u00e9"}]}`}, `{"a":1e400}`, `{"a":{"b":{"c":{"d":1}}}}`, `[]`, `{"a":1,"a":2}`, `{"\u0000":1}`),
		member(7, []string{`null`}, `{"items":[{"name":"x","quantity":1.5,"unit_price":"2000","total":"3000"}],"subtotal":"3000"}`,
			`{"items":[{"name":"x","quantity":1e3,"unit_price":"2000","total":"3000"}]}`, `{"items":[]}`, `{"subtotal":"1"}`),
		member(8, []string{`null`}, `{"inclusive":true,"amount":"100","rate":"18.00"}`, `{"inclusive":false,"amount":"100"}`, `{"inclusive":"yes","amount":"1"}`))
	switch g.IntN(16) {
	case 0:
		return body[:len(body)/2]
	case 1:
		return body + "x"
	case 2:
		return strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20)
	}
	return body
}

// key draws one of the few keys of a script, so that some are used again.
func (g *generator) key() string {
	return fmt.Sprintf(`"%08d-0000-4000-8000-00000000abc%d"`, g.script, g.IntN(3))
}
