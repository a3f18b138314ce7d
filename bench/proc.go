package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// stat is the fields of /proc/PID/stat after the name of the command.
type stat []string

// statOf reads the fields, nil where unknown. The command's name is in
// parentheses and may contain anything.
func statOf(pid int) stat {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// ticks returns the sum of two fields that hold CPU times.
func (s stat) ticks(a, b int) time.Duration {
	if len(s) <= max(a, b) {
		return 0
	}
	x, _ := strconv.ParseInt(s[a], 10, 64)
	y, _ := strconv.ParseInt(s[b], 10, 64)
	return time.Duration(x+y) * (time.Second / ticksPerSec)
}

func selfCPU() time.Duration { return statOf(os.Getpid()).ticks(11, 12) }

// children returns the processes that a process has started, by the name of
// their command unless it is "".
func children(parent int, name string) []int {
	entries, _ := os.ReadDir("/proc")
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s := statOf(pid); len(s) < 2 || s[1] != strconv.Itoa(parent) {
			continue
		}
		comm, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		if name == "" || strings.TrimSpace(string(comm)) == name {
			out = append(out, pid)
		}
	}
	return out
}

// procLine returns what follows a name and a colon in a file of /proc.
func procLine(file, name string) string {
	b, _ := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func totalMemory() int64 {
	var kb int64
	fmt.Sscanf(procLine("/proc/meminfo", "MemTotal"), "%d kB", &kb)
	return kb << 10
}

func loadAverage() (load float64) {
	b, _ := os.ReadFile("/proc/loadavg")
	fmt.Sscan(string(b), &load)
	return load
}
