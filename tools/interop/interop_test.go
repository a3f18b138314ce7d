// Package interop holds our signatures against the official libraries of
// Standard Webhooks, in both directions.
package interop

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"till/webhook"
)

// delivery is one case: what arrives, the secret that the receiver has, and
// whether it should accept.
type delivery struct {
	name   string
	header http.Header
	body   string
	secret webhook.Secret
	accept bool
}

// deliveries are made anew for each test, because their times count.
func deliveries() []delivery {
	const body = `{"id":"019a8e0c-3c52-7cc0-8b5e-3d0e3f5a7b10","type":"payment.success","data":{"payment":{"description":"Café, 你好 😀 \u00e9"}}}`
	var (
		now          = time.Now()
		secret, next = webhook.NewSecret(), webhook.NewSecret()
		signed       = webhook.Sign("e1", now, []byte(body), secret)
		both         = webhook.Sign("e1", now, []byte(body), next, secret)
	)
	with := func(name, value string) http.Header {
		h := signed.Clone()
		h.Set(name, value)
		return h
	}
	at := func(d time.Duration) http.Header { return webhook.Sign("e1", now.Add(d), []byte(body), secret) }
	return []delivery{
		{"as signed", signed, body, secret, true},
		{"during a rotation, with the old secret", both, body, secret, true},
		{"during a rotation, with the new secret", both, body, next, true},
		{"four minutes old", at(-4 * time.Minute), body, secret, true},
		{"an empty body", webhook.Sign("e1", now, nil, secret), "", secret, true},
		{"six minutes old", at(-6 * time.Minute), body, secret, false},
		{"six minutes ahead", at(6 * time.Minute), body, secret, false},
		{"body swapped", signed, strings.Replace(body, "success", "failed", 1), secret, false},
		{"id swapped", with(webhook.HeaderID, "e2"), body, secret, false},
		{"time swapped", with(webhook.HeaderTimestamp, at(time.Second).Get(webhook.HeaderTimestamp)), body, secret, false},
		{"the old secret after the rotation", signed, body, next, false},
		{"no signature", with(webhook.HeaderSignature, ""), body, secret, false},
	}
}

func TestOurVerifierAgrees(t *testing.T) {
	t.Parallel()
	for _, d := range deliveries() {
		err := webhook.Verify(d.header, []byte(d.body), time.Now(), webhook.Tolerance, d.secret)
		if (err == nil) != d.accept {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

func TestTheGoLibraryAgrees(t *testing.T) {
	t.Parallel()
	for _, d := range deliveries() {
		w, err := standardwebhooks.NewWebhook(d.secret.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Verify([]byte(d.body), d.header); (err == nil) != d.accept {
			t.Errorf("%s: %v", d.name, err)
		}
		now := time.Now()
		theirs, err := w.Sign("e1", now, []byte(d.body))
		if err != nil {
			t.Fatal(err)
		}
		h := webhook.Sign("e1", now, []byte(d.body), d.secret)
		if ours := h.Get(webhook.HeaderSignature); ours != theirs {
			t.Errorf("%s: we sign %s, they %s", d.name, ours, theirs)
		}
	}
}

// The JavaScript library is fetched by npm, as the lock file names it. Where
// there is no Node or the package cannot be had, the test says so.
func TestTheJavaScriptLibraryAgrees(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node on this machine")
	}
	dir := install(t)
	type input struct {
		Secret  string            `json:"secret"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	var in bytes.Buffer
	all := deliveries()
	for _, d := range all {
		headers := map[string]string{}
		for name := range d.header {
			headers[strings.ToLower(name)] = d.header.Get(name)
		}
		if err := json.NewEncoder(&in).Encode(input{d.secret.Reveal(), headers, d.body}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), node, "verify.cjs")
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(bytes.NewReader(out))
	for _, d := range all {
		var a struct {
			Accepted  bool
			Signature string
		}
		if err := answers.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if a.Accepted != d.accept {
			t.Errorf("%s: the library accepts: %v", d.name, a.Accepted)
		}
		theirs := d.header.Clone()
		theirs.Set(webhook.HeaderSignature, a.Signature)
		err := webhook.Verify(theirs, []byte(d.body), time.Now(), 10*time.Minute, d.secret)
		if err != nil {
			t.Errorf("%s: we refuse what the library signs: %v", d.name, err)
		}
	}
}

// install puts the library into a folder of the test's own.
func install(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm on this machine")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "verify.cjs"} {
		b, err := os.ReadFile(filepath.Join("node", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("npm cannot fetch the library: %v\n%s", err, out)
	}
	return dir
}
