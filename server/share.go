package server

import (
	"os"
	"runtime"

	"till/store"
)

// Share leaves a database on this machine its half of the cores, unless the
// environment says how many to use. Both do about as much work for a request,
// in turns: with threads for every core, Till looks for work on the core on
// which the database has just been given some. An instance that also works takes
// all of them: while it decides what answers mean, it holds the lock of a client,
// and that must not wait for whatever else it has to do. Share is for a program
// that only serves, before it does.
func Share(role Role, database string) {
	if os.Getenv("GOMAXPROCS") == "" && !role.works() && store.OnSocket(database) {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2))
	}
}
