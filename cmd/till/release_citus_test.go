package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"till/store/storetest"
)

// What a release left on one PostgreSQL is put on a cluster, as the guide says: migrated,
// distributed, verified. Then the API answers as that release did, what was under way goes on
// to its end, and clients on both nodes are served.
func TestTheReleaseBeforeOnACluster(t *testing.T) {
	engine := citusEngine(t)
	found, err := filepath.Glob("../../books/testdata/release-*.answers.gz")
	if err != nil || len(found) == 0 {
		t.Fatalf("there is no fixture of a release: %v", err)
	}
	for _, path := range found {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var was map[string]*releaseAnswers
			if err := json.Unmarshal(storetest.Unzip(t, path), &was); err != nil {
				t.Fatal(err)
			}
			before, dir := was["postgres"], t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "till.secret"), []byte(before.Secret), 0o600); err != nil {
				t.Fatal(err)
			}
			c := &cluster{killing: &killing{t: t, dir: dir, database: engine.Empty(t).Path, book: filepath.Join(dir, "operator.db"), answered: map[string]string{}}}
			storetest.LoadFixture(t, c.database, strings.TrimSuffix(path, ".answers.gz"))
			for _, args := range [][]string{{"migrate"}, {"migrate", "--citus", "--shards", "4"}, {"verify"}} {
				var out, errs bytes.Buffer
				if code := run(context.Background(), append(args, "--database", c.database), &out, &errs); code != 0 {
					t.Fatalf("till %s ends with %d:\n%s%s", strings.Join(args, " "), code, out.String(), errs.String())
				}
			}
			before.compare(t, askAll(t, c.database, before))
			goOn(t, c.database, before)
			c.begin()
			c.allServed("on a database of the release before")
			c.settleShops()
		})
	}
}
