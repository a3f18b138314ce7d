package seed_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"till"
	"till/bench/seed"
	"till/store"
	"till/store/storetest"
	"till/upkeep"
)

// The numbers about money are read once a minute, beside everything else: however many
// payments there are, that takes a moment. make soak reads them of a million (TILL_ROWS).
func TestGaugesOfManyPayments(t *testing.T) {
	rows := int64(2000)
	if n, err := strconv.ParseInt(os.Getenv("TILL_ROWS"), 10, 64); err == nil {
		rows = n
	}
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			s := storetest.Open(t, e.Config(t))
			client := storetest.NewClient(t, s, till.Test)
			if err := seed.Payments(t.Context(), s, seed.Config{Client: client.ID, Rows: rows, From: noon.Add(-90 * 24 * time.Hour), To: noon, Books: true}); err != nil {
				t.Fatal(err)
			}
			var gauges []upkeep.Gauge
			read := func() {
				err := s.View(t.Context(), func(tx *store.Tx) (err error) {
					gauges, err = upkeep.ReadGauges(t.Context(), tx)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			read() // statements are prepared
			fastest := time.Hour
			for range 3 {
				began := time.Now()
				read()
				fastest = min(fastest, time.Since(began))
			}
			t.Logf("%d payments: %d gauges in %s", rows, len(gauges), fastest)
			// A table of a million rows that is read from end to end takes seconds.
			if len(gauges) < 10 || fastest > time.Second {
				t.Errorf("%d gauges in %s", len(gauges), fastest)
			}
		})
	}
}
