package seed_test

import (
	"testing"
	"time"

	"till"
	"till/bench/seed"
	"till/store/storetest"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			s := storetest.Open(t, e.Config(t))
			client := storetest.NewClient(t, s, till.Test)
			before, err := seed.LogBytes(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if err := seed.Payments(t.Context(), s, seed.Config{Client: client.ID, Rows: 500, From: noon.Add(-time.Hour), To: noon}); err != nil {
				t.Fatal(err)
			}
			after, err := seed.LogBytes(t.Context(), s)
			if err != nil || e.Name == "postgres" != (after-before > 500*300) {
				t.Errorf("the log grew by %d bytes, error %v", after-before, err)
			}
			sizes, err := seed.Sizes(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]seed.TableSize{}
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
