package server

import (
	"os"
	"runtime"

	"till/store"
)

// Share leaves a database on this machine its half of the cores, unless the
// environment says how many to use. Both do about as much work for a request,
// in turns: with threads for every core, Till looks for work on the core on
// which the database has just been given some. It is for a program that only
// serves, before it does.
func Share(database string) {
	if os.Getenv("GOMAXPROCS") == "" && store.OnSocket(database) {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2))
	}
}
