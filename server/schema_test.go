package server_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"till/server"
	"till/store"
	"till/store/storetest"
)

// While a newer release is started on its database, a running server stops in
// order, soon, and says why; and it does not start again. (F37, the release
// before itself, is for the test of upgrades.)
func TestARunningServerStopsWhenANewerReleaseMigrates(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := testConfig(t)
			if e.Name != "sqlite" {
				dir := t.TempDir()
				c.Database, c.SecretFile, c.SandboxPath = e.Config(t).Path, filepath.Join(dir, "till.secret"), filepath.Join(dir, "sandbox.db")
				c.DemoFile = ""
			}
			s, err := server.New(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- s.Run(context.Background()) }()
			r, err := http.Get("http://" + s.AdminAddr().String() + "/readyz")
			if err != nil || r.StatusCode != http.StatusOK {
				t.Fatalf("it is not ready: %v %v", r, err)
			}
			r.Body.Close()
			storetest.Raw(t, c.Database, `INSERT INTO schema_migrations (version, checksum, applied_at) VALUES ('9999_later', 'sum', 1)`)
			var schema *store.SchemaError
			select {
			case err := <-ended:
				if !errors.As(err, &schema) {
					t.Errorf("it stopped with %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("it goes on")
			}
			if _, err := server.New(t.Context(), c); !errors.As(err, &schema) {
				t.Errorf("it starts again: %v", err)
			}
		})
	}
}
