package system_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"till/internal/system"
)

func TestALockHasOneHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	defer second.Close()
	if err := system.Lock(first); err != nil {
		t.Fatal(err)
	}
	if err := system.Lock(second); !errors.Is(err, system.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	// Who has it is written in the file, and others read it.
	if _, err := first.WriteString("17"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "17" {
		t.Errorf("read %q, %v", b, err)
	}
	first.Close()
	if err := system.Lock(second); err != nil {
		t.Errorf("after it was let go: %v", err)
	}
}

func TestAProcessRunsOrDoesNot(t *testing.T) {
	t.Parallel()
	if !system.IsRunning(os.Getpid()) {
		t.Error("this process does not run")
	}
	if system.IsRunning(1 << 30) {
		t.Error("a process that cannot be runs")
	}
}

func TestAnAddressInUseIsKnown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = net.Listen("tcp", l.Addr().String())
	if !system.IsInUse(err) || system.IsForbidden(err) {
		t.Errorf("%v: not known as in use", err)
	}
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "127.9.9.9": true, "[::1]:80": true, "::1": true, "localhost:80": true, "localhost": true, "[::ffff:127.0.0.1]:80": true,
		":80": false, "": false, "0.0.0.0:80": false, "[::]:80": false, "10.0.0.1": false, "[fe80::1%eth0]:80": false, "localhost.example.com": false,
		"127.0.0.1.example.com:80": false, "[::ffff:10.0.0.1]:80": false, "db": false,
	} {
		if got := system.IsLoopback(address); got != want {
			t.Errorf("%q: %v, want %v", address, got, want)
		}
	}
}
