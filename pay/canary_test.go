package pay

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/account"
	"till/checkout"
	"till/provider/sandbox"
	"till/store"
	"till/store/checkouts"
	"till/store/storetest"
)

// logText is a log that many write to.
type logText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// I26: a whole number is in the form that it was typed into and nowhere else: no other page, no
// address, no header, no line of the log, no name of a count; and no page shows what is of
// another address. Numbers are asked, declined, slowed, blocked, mistyped, named by the shop.
func TestNoCanaryNumberIsSeen(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		log := &logText{}
		w.pages.c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		w.pages.rush = newRush(&w.pages.c)
		for range sourceAsks - 1 { // so that an ask leaves the line about many
			w.pages.rush.sources.Take(netip.MustParsePrefix("203.0.113.7/32"), time.Now())
		}
		canaries := []string{"242061730001", "242061730002", "242061730003", "242061730000", "242061730006"}
		spellings := func(n string) []string {
			return []string{n, n[3:], n[3:5] + " " + n[5:8] + " " + n[8:10] + " " + n[10:], n[4:]}
		}
		// unseen fails if an answer has a canary that the request did not type.
		unseen := func(what string, a answer, typed string) {
			t.Helper()
			whole := strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(textOf(a.body)) + fmt.Sprint(a.header)
			for _, n := range canaries {
				for _, text := range spellings(n) {
					if n != typed && strings.Contains(whole, text) {
						t.Errorf("%s shows %s", what, text)
					}
				}
			}
		}
		var paths, owns []string
		look := func() {
			t.Helper()
			for _, p := range paths {
				for _, end := range []string{"", "/qr.svg"} {
					unseen(p+end, w.get(p+end), "")
				}
			}
		}
		link, _ := w.link(anyAmount)
		paths = append(paths, link)
		for _, n := range canaries {
			path := w.open(`,"description":"Two loaves"`)
			paths = append(paths, path)
			form := w.formOf(w.get(path))
			time.Sleep(2 * time.Second)
			unseen("a mistyped number", w.do(http.MethodPost, path, url.Values{"form": {form}, "phone": {n + "99"}, "market": {"mtn_momo.CG"}}), n)
			sure := w.do(http.MethodPost, path, url.Values{"form": {form}, "phone": {n}, "market": {"mtn_momo.CG"}})
			unseen("the question", sure, n)
			asked := w.do(http.MethodPost, path, hiddenOf(sure))
			unseen("the answer", asked, "")
			if own := asked.header.Get("Location"); asked.status == http.StatusSeeOther {
				paths, owns = append(paths, own), append(owns, own)
			}
			look()
			time.Sleep(time.Minute)
			look()
			unseen("a link's answer", w.knock(link, n), n)
			if _, err := w.pages.c.Limits.Block(context.Background(), w.store, n, true, "person:Awa", "letter"); err != nil {
				t.Fatal(err)
			}
			unseen("a blocked number", w.knock(link, n), n)
			named := w.open(`,"phone":"` + n + `"`)
			unseen("a named number", w.get(named), "")
			form = w.formOf(w.get(named))
			time.Sleep(2 * time.Second)
			unseen("a named number, blocked", w.do(http.MethodPost, named, url.Values{"form": {form}, "market": {"mtn_momo.CG"}, "sure": {"shop"}}), "")
			w.do(http.MethodPost, named+"/report", url.Values{})
			paths = append(paths, named)
		}
		look()
		w.get(Prefix + canaries[0]) // an address that is none
		w.pages.rush.refusals.Flush()

		var told strings.Builder
		storetest.View(t, w.store, func(ctx context.Context, tx *store.Tx) error {
			cases, err := tx.Cases(ctx, store.CaseFilter{Client: w.client.ID, Limit: 100})
			if err != nil || len(cases) != len(canaries) {
				t.Errorf("%d cases, %v", len(cases), err)
			}
			for _, c := range cases {
				fmt.Fprintln(&told, c.Detail)
			}
			blocks, err := checkouts.Blocks(ctx, tx, 100)
			fmt.Fprintln(&told, blocks)
			return err
		})
		for _, line := range []string{"page to pay on reported", "many asks came from one address"} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("the log does not say %q: %s", line, log)
			}
		}
		for _, n := range canaries {
			for _, text := range spellings(n) {
				if strings.Contains(log.String(), text) || strings.Contains(told.String(), text) {
					t.Errorf("the log, a case or a block has %s", text)
				}
			}
		}
		if len(owns) < 2 {
			t.Fatalf("%d asks were made", len(owns))
		}
		// What is of one checkout is not at the address of another.
		for i, own := range owns {
			other := owns[(i+1)%len(owns)]
			mixed := other[:len(Prefix)+20] + own[len(Prefix)+20:]
			if a := w.get(mixed); a.status != http.StatusNotFound {
				t.Errorf("%s: %d", mixed, a.status)
			}
		}
	})
}

// A form's seal, a body and what follows an address as strangers may send them: nothing fails, and
// nothing is asked.
func FuzzPosts(f *testing.F) {
	f.Add("AAAA", "phone=242061230001&market=mtn_momo.CG&sure=242061230001", "")
	f.Add("", "amount=%F0%28%8C%BC&phone=\x00", "/1-000000000000")
	f.Add("-_", "form=1&form=2;phone", "/report/")
	f.Add(strings.Repeat("A", 300), strings.Repeat("x=1&", 5000), "/qr.svg")
	f.Add("AZxtcw8D3vkYmDbmba5TlMnAkh_FdhtGnTwjarPmNySLn8bR6v3o", "go_on=1&own=x&change=1", "/%2e%2e/")
	operator, err := sandbox.Open(f.Context(), sandbox.Config{Path: filepath.Join(f.TempDir(), "sandbox.db"), Window: time.Hour, Post: func(context.Context, string, []byte) error { return nil }})
	if err != nil {
		f.Fatal(err)
	}
	road := &way{Provider: operator}
	r := newRacer(f, storetest.Engines()[0].Config(f), road)
	f.Cleanup(func() { operator.Close() })
	client, _, err := account.New(r.store, nil).CreateClient(f.Context(), "Boulangerie Mapassa", till.Test, "command:test")
	if err != nil {
		f.Fatal(err)
	}
	storetest.AllowRefunds(f, r.store)
	paths := []string{aCheckout(f, r, client), aLink(f, r, client)}
	f.Fuzz(func(t *testing.T, form, body, rest string) {
		for _, path := range append(paths, Prefix+checkout.NewToken()) {
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodHead} {
				req := httptest.NewRequest(method, "https://pay.till.test"+path, strings.NewReader("form="+url.QueryEscape(form)+"&"+body))
				req.URL.Path = path + rest
				req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				a := httptest.NewRecorder()
				r.pages.ServeHTTP(a, req)
				if to := a.Header().Get("Location"); a.Code >= http.StatusInternalServerError || strings.Contains(to, "/1-") || to != "" && !strings.HasPrefix(to, Prefix) {
					t.Fatalf("%s %q: %d to %q %s", method, req.URL.Path, a.Code, to, a.Body)
				}
			}
		}
		if n := road.submits.Load(); n != 0 {
			t.Fatalf("%d prompts", n)
		}
	})
}

// Addresses of asks and of pages as strangers may write them are read in one way, or not at all.
func FuzzToken(f *testing.F) {
	for _, seed := range []string{"", "0123456789abcdefghjk", "OoIiLl0123456789abcd", "0123456789 abcdefghj", "\xff123456789abcdefghj"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, ok := checkout.ParseToken(text)
		if again, good := checkout.ParseToken(token); ok && (!good || again != token || len(token) != 20 || strings.ToLower(token) != token) {
			t.Fatalf("%q is read as %q, and that as %q", text, token, again)
		}
		if capital, good := checkout.ParseToken(strings.ToUpper(text)); ok && (!good || capital != token) {
			t.Fatalf("%q in capitals is read as %q", text, capital)
		}
	})
}
