package system

import (
	"os"
	"strconv"
	"syscall"
)

// LowerPriority lets this process run only while nobody else wants the
// processor. Linux keeps the priority by thread, and new threads take it over
// from the ones that make them. Elsewhere than on Linux it does nothing.
func LowerPriority() {
	const lowest = 19
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, lowest) // it runs as before if it may not
		}
	}
}
