package main

import (
	"strings"
	"testing"

	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// pulse leaves the sign of an instance that runs.
func pulse(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx *store.Tx) error {
		return admin.PulseInstance(t.Context(), tx, &admin.Instance{ID: newUUID(), Version: "v0.9.0", Role: "all"})
	}); err != nil {
		t.Fatal(err)
	}
}

// A database is not distributed under an instance that took it for one
func TestDistributingWaitsForInstances(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		if e.Name == "sqlite" {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Empty(t)
			s, err := store.Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := admin.ReadyToDistribute(t.Context(), s); err != nil {
				t.Errorf("without a schema: %v", err)
			}
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := admin.ReadyToDistribute(t.Context(), s); err != nil {
				t.Errorf("without instances: %v", err)
			}
			pulse(t, s)
			code, out := (&killing{t: t}).run("", "migrate", "--citus", "--database", config.Path)
			if code == 0 || !strings.Contains(out, "v0.9.0") || !strings.Contains(out, "stop them") {
				t.Errorf("with an instance: %d %s", code, out)
			}
		})
	}
}
