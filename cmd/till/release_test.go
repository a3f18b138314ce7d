package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"till/server"
	"till/store/storetest"
)

// releaseAnswers is what the API of a release answered about its fixture. The secret and
// the key are of nothing else.
type releaseAnswers struct {
	Secret  string                     `json:"secret"`
	Key     string                     `json:"key"`
	Answers map[string]json.RawMessage `json:"answers"` // by path
}

// The statuses that a fixture has.
var (
	paymentStatuses  = []string{"pending", "processing", "success", "failed", "expired"}
	payoutStatuses   = []string{"pending", "processing", "success", "failed", "cancelled"}
	deliveryStatuses = []string{"pending", "delivered", "superseded", "exhausted", "disabled"}
)

// listed is a page of a list. That of deliveries has no total.
type listed struct {
	Total int
	Items []json.RawMessage
}

func (l *listed) count() int { return max(l.Total, len(l.Items)) }

// check fails if the fixture lacks a status, or is small.
func (a *releaseAnswers) check(t *testing.T) {
	t.Helper()
	rows := map[string]int{}
	for path, text := range a.Answers {
		var page listed
		if err := json.Unmarshal(text, &page); err != nil {
			t.Fatal(err)
		}
		list, status, found := strings.Cut(path, "?limit=100&status=")
		if i := strings.LastIndex(list, "/"); found {
			rows[list[i+1:]+" "+status] += page.count()
		}
	}
	sum := 0
	for list, statuses := range map[string][]string{"payments": paymentStatuses, "payouts": payoutStatuses, "deliveries": deliveryStatuses} {
		for _, status := range statuses {
			n := rows[list+" "+status]
			if n == 0 {
				t.Errorf("there are no %s %s", list, status)
			}
			if list != "deliveries" {
				sum += n
			}
		}
	}
	if sum < 280 {
		t.Errorf("only %d payments and payouts: %v", sum, rows)
	}
}

// askAll asks an instance of this program that calls no operator for everything that is in
// a database: lists by status, one of each status with its attempts and events, the log,
// wallets, lines and endpoints.
func askAll(t *testing.T, database string, a *releaseAnswers) map[string]json.RawMessage {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "till.secret")
	if err := os.WriteFile(secret, []byte(a.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), server.Config{Database: database, SecretFile: secret, SandboxPath: filepath.Join(dir, "sandbox.db"), Listen: "127.0.0.1:0", Role: server.RoleAPI})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	defer stop()
	out := map[string]json.RawMessage{}
	ask := func(path string) (ids []string) {
		t.Helper()
		q, _ := http.NewRequest(http.MethodGet, s.BaseURL()+path, nil)
		q.Header.Set("X-Api-Key", a.Key)
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s %v", path, res.StatusCode, b, err)
		}
		out[path] = b
		var page struct{ Items []struct{ ID any } } // an attempt has a number
		if err := json.Unmarshal(b, &page); err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			ids = append(ids, fmt.Sprint(item.ID))
		}
		return ids
	}
	for list, statuses := range map[string][]string{"/payments": paymentStatuses, "/payouts": payoutStatuses} {
		for _, status := range statuses {
			for i, id := range ask(list + "?limit=100&status=" + status) {
				if i%10 == 0 {
					ask(list + "/" + id)
					ask(list + "/" + id + "/attempts")
					ask(list + "/" + id + "/events")
				}
			}
		}
	}
	for _, id := range ask("/webhook-endpoints") {
		for _, status := range deliveryStatuses {
			ask("/webhook-endpoints/" + id + "/deliveries?limit=100&status=" + status)
		}
	}
	ask("/events?limit=100")
	ask("/wallets")
	ask("/transactions?limit=100")
	return out
}

// What each release left is migrated, and the API answers as that release did. What is new
// in an answer is no difference; what is gone or another value is. What was under way goes
// on to its end. 'make fixture' makes the files.
func TestTheAnswersOfEveryReleaseStay(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("../../books/testdata/release-*.answers.gz")
	if err != nil || len(found) == 0 {
		t.Fatalf("there is no fixture of a release: %v", err)
	}
	for _, path := range found {
		base := strings.TrimSuffix(path, ".answers.gz")
		var was map[string]*releaseAnswers
		if err := json.Unmarshal(storetest.Unzip(t, path), &was); err != nil {
			t.Fatal(err)
		}
		for _, e := range storetest.Engines() {
			if e.Name == "citus" {
				continue // TestTheReleaseBeforeOnACluster
			}
			t.Run(filepath.Base(base)+"/"+e.Name, func(t *testing.T) {
				t.Parallel()
				config := e.Empty(t)
				storetest.LoadFixture(t, config.Path, base)
				before := was[e.Name]
				before.check(t)
				before.compare(t, askAll(t, config.Path, before))
				goOn(t, config.Path, before)
			})
		}
	}
}

// compare fails where the API answers otherwise than the release did.
func (a *releaseAnswers) compare(t *testing.T, after map[string]json.RawMessage) {
	t.Helper()
	if got, want := slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(a.Answers)); !slices.Equal(got, want) {
		t.Errorf("other things are there: %d and %d", len(got), len(want))
	}
	for path, text := range a.Answers {
		var old, is any
		if json.Unmarshal(text, &old) != nil || json.Unmarshal(after[path], &is) != nil {
			t.Errorf("%s: %.200s", path, after[path])
			continue
		}
		if where := changedAt("", old, is); where != "" {
			t.Errorf("%s differs at %s", path, where)
		}
	}
}

// changedAt returns where a value is not as it was, "" if nowhere. A member that is new is no
// difference.
func changedAt(at string, old, is any) string {
	switch was := old.(type) {
	case map[string]any:
		now, ok := is.(map[string]any)
		if !ok {
			return at
		}
		for _, k := range slices.Sorted(maps.Keys(was)) {
			if _, there := now[k]; !there {
				return at + "/" + k
			}
			if where := changedAt(at+"/"+k, was[k], now[k]); where != "" {
				return where
			}
		}
		return ""
	case []any:
		now, ok := is.([]any)
		if !ok || len(now) != len(was) {
			return at
		}
		for i := range was {
			if where := changedAt(fmt.Sprintf("%s/%d", at, i), was[i], now[i]); where != "" {
				return where
			}
		}
		return ""
	}
	if old == "waiting" && is == "querying" && strings.HasSuffix(at, "/resolution/state") {
		return "" // its time is over since
	}
	if !reflect.DeepEqual(old, is) {
		return fmt.Sprintf("%s: it was %v and is %v", at, old, is)
	}
	return ""
}
