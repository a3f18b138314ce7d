package storetest

import (
	"os"
	"runtime/debug"
)

// Tests make much garbage and keep little, as the service does. By default the collector
// would run dozens of times a second, for a good part of all the time that tests take. So
// it runs as seldom as in the service.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
