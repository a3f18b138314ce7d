package books_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"till/books"
	"till/store"
	"till/store/storetest"
)

// Clients that were suspended by a release that held nothing are held after the
// upgrade.
func TestClientsThatWereSuspendedBeforeAnUpgradeAreHeld(t *testing.T) {
	t.Parallel()
	const suspend = `UPDATE clients SET suspended = 1 WHERE mode = 'live'`
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Empty(t)
			storetest.LoadFixture(t, config.Path, "testdata/schema-0014")
			if store.IsPostgres(config.Path) {
				conn, err := pgx.Connect(t.Context(), config.Path)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close(t.Context())
				if _, err := conn.Exec(t.Context(), suspend); err != nil {
					t.Fatal(err)
				}
			} else {
				raw := storetest.OpenRaw(t, config.Path)
				storetest.Exec(t, raw, suspend)
				raw.Close()
			}
			s, err := store.Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := e.Distribute(t, s); err != nil {
				t.Fatal(err)
			}
			held, err := books.HeldPayouts(t.Context(), s, store.EveryClient)
			if err != nil || len(held.Holds) != 2 || held.Holds[0].Cause != store.HoldSuspended || held.Holds[0].At.IsZero() {
				t.Errorf("%+v, %v; want both live clients held because they are suspended", held, err)
			}
		})
	}
}
