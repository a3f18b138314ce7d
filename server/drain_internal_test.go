package server

import (
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"till/internal/loop"
)

// systemd is told that the program is alive only while no loop of it is stuck.
func TestTheWatchdogIsToldWhileNoLoopIsStuck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	told := func() string {
		t.Helper()
		b := make([]byte, 100)
		systemd.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := systemd.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	s := &Server{log: slog.New(slog.DiscardHandler)}
	stepped, _ := s.loops.observer("collector").Begin(&loop.Options{Interval: time.Second})
	s.tellAlive()
	if got := told(); got != "WATCHDOG=1" {
		t.Errorf("told %q", got)
	}
	for b := range s.loops.running["collector"] {
		b.at = b.at.Add(-2 * time.Minute)
	}
	s.tellAlive()
	s.tell("END")
	if got := told(); got != "END" {
		t.Errorf("a loop is stuck, and systemd was told %q", got)
	}
	stepped(false)
	s.tellAlive()
	if got := told(); got != "WATCHDOG=1" {
		t.Errorf("the loop goes on, and systemd was told %q", got)
	}
}
