package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"till/api"
)

// countCollections fails unless both collections have every call of the API.
func countCollections(t *testing.T) {
	t.Helper()
	want := 0
	for _, r := range api.Routes {
		if !strings.HasPrefix(r.Path, "/callbacks/") {
			want++
		}
	}
	text, err := os.ReadFile("../../api/postman.json")
	if err != nil {
		t.Fatal(err)
	}
	bru, err := filepath.Glob("../../api/bruno/*/*.bru")
	if err != nil {
		t.Fatal(err)
	}
	bru = slices.DeleteFunc(bru, func(p string) bool { return filepath.Base(p) == "folder.bru" || filepath.Base(p) == "dev.bru" })
	if n := strings.Count(string(text), `"method":`); n != want || len(bru) != want {
		t.Errorf("of %d calls Postman's collection has %d and Bruno's %d", want, n, len(bru))
	}
}

// The collections for Postman and Bruno have every call. 'make collections' installs the
// command lines of these programs and names them in TILL_COLLECTIONS: then the collections
// run from the top against a real service. Sent twice, a payment is made once.
func TestCollections(t *testing.T) {
	countCollections(t)
	tools := os.Getenv("TILL_COLLECTIONS")
	if tools == "" {
		return
	}
	base, key := pageService(t)
	ask := func(verb, path, body string) string {
		var answer json.RawMessage
		askPage(t, base, key, verb, path, body, &answer)
		return string(answer)
	}
	ask(http.MethodPost, "/payments", fmt.Sprintf(`{"method": "mtn_momo", "country": "CG", "amount": {"value": "50000", "currency": "XAF"},
		"customer": {"phone": "242061234567"}, "idempotency_key": "%s"}`, newUUID()))
	for until := time.Now().Add(waitTimeout); !strings.Contains(ask(http.MethodGet, "/wallets", ""), `"balance":"50000"`); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the wallet is never credited")
		}
	}
	run := func(dir, name string, args ...string) {
		cmd := exec.Command(filepath.Join(tools, "node_modules", ".bin", name), args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	run("../../api", "newman", "run", "postman.json", "-n", "2", "--env-var", "base_url="+base, "--env-var", "key="+key, "--env-var", "order=ORDER-POSTMAN")
	folder := filepath.Join(t.TempDir(), "bruno") // a copy: it may write into its environment
	if err := os.CopyFS(folder, os.DirFS("../../api/bruno")); err != nil {
		t.Fatal(err)
	}
	run(folder, "bru", "run", "--env", "dev", "--env-var", "base_url="+base, "--env-var", "key="+key, "--env-var", "order=ORDER-BRUNO")
	for _, order := range []string{"ORDER-POSTMAN", "ORDER-BRUNO"} {
		var page struct{ Total int }
		if err := json.Unmarshal([]byte(ask(http.MethodGet, "/payments?reference="+order, "")), &page); err != nil || page.Total != 1 {
			t.Errorf("%s has %d payments (%v)", order, page.Total, err)
		}
	}
}
