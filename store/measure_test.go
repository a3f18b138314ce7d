package store_test

import (
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			s := storetest.Open(t, e.Config(t))
			client := storetest.NewClient(t, s, till.Test)
			before, err := s.LogBytes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Seed(t.Context(), store.Seed{Client: client.ID, Rows: 500, From: noon - till.Hour, To: noon}); err != nil {
				t.Fatal(err)
			}
			after, err := s.LogBytes(t.Context())
			if err != nil || e.Name == "postgres" != (after-before > 500*300) {
				t.Errorf("the log grew by %d bytes, error %v", after-before, err)
			}
			sizes, err := s.Sizes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]store.TableSize{}
			for _, size := range sizes {
				found[size.Table] = size
			}
			if p := found["payments"]; p.Rows != 500 || p.Bytes < 500*300 || p.Bytes > 500*3000 {
				t.Errorf("payments: %+v", p)
			}
			if c := found["clients"]; c.Rows != 1 || c.Bytes < 4096 {
				t.Errorf("clients: %+v", c)
			}
		})
	}
}
