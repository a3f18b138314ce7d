package server

import (
	"os"
	"runtime"
	"testing"
)

// Half of the cores are left to a database on this machine, and to no other, by
// an instance that only accepts; who says how many to use is heeded. It is not parallel: it is about the whole
// process.
func TestShare(t *testing.T) {
	all := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(all)
	for _, c := range []struct {
		role           Role
		database, said string
		cores, want    int
	}{
		{RoleAPI, "postgres://till@/till?host=/run/postgresql", "", 4, 2},
		{RoleAPI, "postgres://till@/till?host=/run/postgresql", "", 1, 1},
		{RoleAPI, "postgres://till@/till?host=/run/postgresql", "4", 4, 4},
		{RoleAPI, "postgres://till@127.0.0.1/till", "", 4, 4},
		{RoleAPI, "postgres://till@db1,db2/till", "", 4, 4},
		{RoleAPI, "postgres://%zz", "", 4, 4},
		{RoleAPI, "till.db", "", 4, 4},
		{RoleAll, "postgres://till@/till?host=/run/postgresql", "", 4, 4},
		{RoleWorker, "postgres://till@/till?host=/run/postgresql", "", 4, 4},
	} {
		t.Setenv("GOMAXPROCS", c.said)
		t.Setenv("PGHOST", "")
		if c.said == "" {
			os.Unsetenv("GOMAXPROCS")
		}
		runtime.GOMAXPROCS(c.cores)
		Share(c.role, c.database)
		if got := runtime.GOMAXPROCS(0); got != c.want {
			t.Errorf("%s, %s, %q said: %d of %d cores, want %d", c.role, c.database, c.said, got, c.cores, c.want)
		}
	}
}
