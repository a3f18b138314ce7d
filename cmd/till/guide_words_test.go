package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/api"
)

var (
	anyFence = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan = regexp.MustCompile("`([^`]+)`")
	aRequest = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) /\S*$`)
	quoted   = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)
	unitLine = regexp.MustCompile(`(?m)^Exec\w+=\S*/(till .*)$`)
)

// guideSpans returns what a page has in `code` inside its prose, and the
// commands of its systemd units.
func guideSpans(t *testing.T, page string) (spans []string) {
	t.Helper()
	text := guideText(t, page)
	for _, m := range codeSpan.FindAllStringSubmatch(anyFence.ReplaceAllString(comment.ReplaceAllString(text, ""), ""), -1) {
		spans = append(spans, strings.Join(strings.Fields(m[1]), " "))
	}
	for _, m := range unitLine.FindAllStringSubmatch(text, -1) {
		spans = append(spans, m[1])
	}
	return spans
}

// A command in the prose of a page is one of the program's, with flags that it
// has and as many arguments as it takes. What is only named, as `till cases`, has none.
func TestCommandsInTheProseOfGuidesExist(t *testing.T) {
	t.Parallel()
	n := 0
	for _, page := range guidePages(t) {
		for _, span := range guideSpans(t, page) {
			rest, ok := strings.CutPrefix(span, "till ")
			if !ok {
				continue
			}
			n++
			var words []string
			for _, w := range quoted.FindAllString(rest, -1) {
				if w != "…" {
					words = append(words, strings.Trim(w, `"'`))
				}
			}
			if err := understood(words); err != nil {
				t.Errorf("%s: `%s`: %v", page, span, err)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d commands were found", n)
	}
}

// understood reports what is wrong with a command line, without running it.
func understood(words []string) error {
	root := newRoot()
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	args := cmd.Flags().Args()
	if len(args) == 0 && (cmd.Runnable() || len(rest) == 0) {
		return nil
	}
	return cmd.ValidateArgs(args)
}

// A request in the prose of a page has a route and names parameters that the
// route knows, and a real server answers it: reads with 200, the others with
// anything but "there is no such thing".
func TestRequestsInTheProseOfGuidesAreAnswered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := &killing{t: t, dir: dir, database: dir + "/till.db", book: dir + "/sandbox.db"}
	k.start()
	ids := guideIDs(k)
	pages := map[string]string{} // where each was read
	for _, page := range guidePages(t) {
		for _, span := range guideSpans(t, page) {
			if aRequest.MatchString(span) {
				pages[span] = page
			}
		}
	}
	if len(pages) < 20 {
		t.Errorf("only %d requests were found", len(pages))
	}
	requests := slices.Sorted(maps.Keys(pages))
	slices.SortStableFunc(requests, func(a, b string) int { // what is deleted answers no more
		return cmp.Compare(strings.Count(a, "DELETE"), strings.Count(b, "DELETE"))
	})
	for _, span := range requests {
		verb, path, _ := strings.Cut(span, " ")
		if !hasRoute(verb, path) {
			t.Errorf("%s: `%s` has no route, or not with these parameters", pages[span], span)
			continue
		}
		for noun, id := range ids {
			path = regexp.MustCompile("^(/sandbox)?/"+noun+`/\{\w+\}`).ReplaceAllString(path, "$1/"+noun+"/"+id)
		}
		status, body := k.ask(verb, path, "")
		if verb == http.MethodGet && status != http.StatusOK || status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status >= 500 {
			t.Errorf("%s: `%s` is answered %d %s", pages[span], span, status, body)
		}
	}
}

// hasRoute reports whether there is a route for a request, and whether it knows
// the parameters.
func hasRoute(verb, target string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	pattern := func(path string) string { return regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "{}") }
	return slices.ContainsFunc(api.Routes, func(r api.Route) bool {
		known := true
		for name := range u.Query() {
			known = known && slices.Contains(r.Query, name)
		}
		return r.Method == verb && pattern(r.Path) == pattern(u.Path) && known
	})
}

// guideIDs makes one of everything that a path can name. The payment waits for
// its customer, so that the prompt is there.
func guideIDs(k *killing) map[string]string {
	k.t.Helper()
	made := func(member, body string) string {
		var v map[string]any
		if err := json.Unmarshal([]byte(body), &v); err != nil || v[member] == nil {
			k.t.Fatalf("%v: %s", err, body)
		}
		return v[member].(string)
	}
	payment := func(phone string) string {
		_, body := k.ask(http.MethodPost, "/payments", `{"method": "mtn_momo", "country": "CG", "amount": {"value": "5000", "currency": "XAF"},
			"customer": {"phone": "`+phone+`"}, "idempotency_key": "`+newUUID().String()+`"}`)
		return made("id", body)
	}
	paid, open := payment("242061234567"), payment("242061230000")
	for deadline := time.Now().Add(waitTimeout); ; time.Sleep(50 * time.Millisecond) {
		_, one := k.ask(http.MethodGet, "/payments/"+paid, "")
		_, other := k.ask(http.MethodGet, "/sandbox/prompts", "")
		if strings.Contains(one, `"status":"success"`) && strings.Contains(other, open) {
			break
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("%s %s", one, other)
		}
	}
	var out, errs bytes.Buffer
	scopes := ""
	for _, s := range till.Scopes {
		scopes += "," + string(s)
	}
	_, client, _ := strings.Cut(guideRun(k, &out, &errs, "client", "list", "--json"), `"client_id":"`)
	k.key = made("api_key", guideRun(k, &out, &errs, "key", "create", "--client", client[:36], "--scopes", scopes[1:], "--json"))
	_, payout := k.ask(http.MethodPost, "/payouts", `{"method": "mtn_momo", "country": "CG", "amount": {"value": "100", "currency": "XAF"},
		"recipient": {"phone": "242061234567"}, "idempotency_key": "`+newUUID().String()+`"}`)
	_, refund := k.ask(http.MethodPost, "/refunds", `{"payment_id": "`+paid+`", "amount": {"value": "100", "currency": "XAF"}, "idempotency_key": "`+newUUID().String()+`"}`)
	_, link := k.ask(http.MethodPost, "/links", `{"title": "Alms", "open_amount": {"currency": "XAF"}, "idempotency_key": "`+newUUID().String()+`"}`)
	_, checkout := k.ask(http.MethodPost, "/checkouts", `{"amount": {"value": "5000", "currency": "XAF"}, "idempotency_key": "`+newUUID().String()+`"}`)
	_, endpoint := k.ask(http.MethodPost, "/webhook-endpoints", `{"url": "http://127.0.0.1:9999/", "events": ["payment.success"]}`)
	_, events := k.ask(http.MethodGet, "/payments/"+paid+"/events", "")
	_, event, _ := strings.Cut(events, `"id":"`)
	_, key := k.ask(http.MethodPost, "/api-keys", `{"name": "another", "scopes": ["payments:read"]}`)
	return map[string]string{"payments": paid, "payouts": made("id", payout), "refunds": made("id", refund), "checkouts": made("id", checkout), "links": made("id", link), "webhook-endpoints": made("id", endpoint),
		"events": event[:36], "api-keys": made("id", key), "sandbox/prompts": open}
}

func guideRun(k *killing, out, errs *bytes.Buffer, args ...string) string {
	k.t.Helper()
	out.Reset()
	if code := run(k.t.Context(), append(args, "--database", k.database), out, errs); code != 0 {
		k.t.Fatalf("till %v: %d %s", args, code, errs)
	}
	return out.String()
}

// ask sends a request and returns the answer.
func (k *killing) ask(verb, path, body string) (int, string) {
	k.t.Helper()
	r, err := http.NewRequestWithContext(k.t.Context(), verb, k.base()+path, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", k.key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}
