package server

import (
	"os"
	"runtime"
	"testing"
)

// Half of the cores are left to a database on this machine, and to no other;
// who says how many to use is heeded. It is not parallel: it is about the whole
// process.
func TestShare(t *testing.T) {
	all := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(all)
	for _, c := range []struct {
		database, said string
		cores, want    int
	}{
		{"postgres://till@/till?host=/run/postgresql", "", 4, 2},
		{"postgres://till@/till?host=/run/postgresql", "", 1, 1},
		{"postgres://till@/till?host=/run/postgresql", "4", 4, 4},
		{"postgres://till@127.0.0.1/till", "", 4, 4},
		{"postgres://till@db1,db2/till", "", 4, 4},
		{"postgres://%zz", "", 4, 4},
		{"till.db", "", 4, 4},
	} {
		t.Setenv("GOMAXPROCS", c.said)
		t.Setenv("PGHOST", "")
		if c.said == "" {
			os.Unsetenv("GOMAXPROCS")
		}
		runtime.GOMAXPROCS(c.cores)
		Share(c.database)
		if got := runtime.GOMAXPROCS(0); got != c.want {
			t.Errorf("%s, %q said: %d of %d cores, want %d", c.database, c.said, got, c.cores, c.want)
		}
	}
}
