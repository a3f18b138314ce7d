//go:build unix

package server_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"till/secret"
	"till/server"
)

func TestEveryFileIsItsOwnersAlone(t *testing.T) {
	syscall.Umask(0o022) // what most machines have
	c := testConfig(t)
	folder := filepath.Dir(c.Database)
	if err := os.Mkdir(folder, 0o755); err != nil { // it was there before Till
		t.Fatal(err)
	}
	r := start(t, c)
	r.await(r.create("242061234567"), "success")
	names := ""
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		names += " " + d.Name()
		if i.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", d.Name(), i.Mode().Perm())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"till.db", "till.db-wal", "till.db-shm", "till.db.lock", "till.secret", "sandbox.db", "sandbox.db-wal", "sandbox.db-shm", "demo-key.json"} {
		if !strings.Contains(names+" ", " "+want+" ") {
			t.Errorf("there is no %s among%s", want, names)
		}
	}
}

// logged starts and stops a server and returns what it logged.
func logged(t *testing.T, c server.Config) string {
	t.Helper()
	var b bytes.Buffer
	c.Log = slog.New(slog.NewTextHandler(&b, nil))
	if err := start(t, c).stop(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAStartWarnsOfFilesThatOthersCanRead(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.SandboxPath = filepath.Join(filepath.Dir(c.Database), "sandbox.db")
	if log := logged(t, c); strings.Contains(log, "private files") {
		t.Errorf("a new installation: %s", log)
	}
	for _, file := range []string{c.Database, c.SandboxPath, secret.File(c.Database), c.DemoFile} {
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
		// In a folder that is closed to others, nobody gets at it.
		if log := logged(t, c); strings.Contains(log, "private files") {
			t.Errorf("%s in a closed folder: %s", file, log)
		}
		os.Chmod(filepath.Dir(file), 0o755)
		if log := logged(t, c); !strings.Contains(log, "run: chmod 600 "+file) {
			t.Errorf("nothing is said of %s: %s", file, log)
		}
		os.Chmod(filepath.Dir(file), 0o700)
		os.Chmod(file, 0o600)
	}
}

func TestAnAddressThatOthersReachIsRefusedWhereOnlyLoopbackIsMeant(t *testing.T) {
	t.Parallel()
	addresses := []string{"0.0.0.0:0", ":0", "[::]:0", "[::ffff:0.0.0.0]:0"}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range interfaces {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			addresses = append(addresses, net.JoinHostPort(n.IP.String(), "0"))
		}
	}
	if name, err := os.Hostname(); err == nil {
		if ips, err := net.LookupIP(name); err == nil && !ips[0].IsLoopback() {
			addresses = append(addresses, net.JoinHostPort(name, "0"))
		}
	}
	for _, address := range addresses {
		c := testConfig(t)
		c.Listen, c.LoopbackOnly = address, true
		refused(t, c, "can be reached from other machines")
		if _, err := os.Stat(c.Database); err == nil {
			t.Errorf("%s: a database was made for a server that cannot run", address)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "127.1.2.3:0", "[::1]:0", "localhost:0"} {
		c := testConfig(t)
		c.Listen, c.LoopbackOnly = address, true
		start(t, c)
	}
}

func TestWhatTravelsUnencryptedIsTold(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		c    server.Config
		want string // the names of what is told
	}{
		{server.Config{Database: "postgres://till@db.internal/till?sslmode=disable"}, "database link"},
		{server.Config{Database: "postgres://till@db.internal/till?sslmode=allow"}, "database link"},
		{server.Config{Database: "postgresql://till@db.internal/till?sslmode=prefer"}, "database link"},
		{server.Config{Database: "postgres://till@db.internal/till"}, "database link"},
		{server.Config{Database: "postgres://till@10.1.2.3:6432/till"}, "database link"},
		{server.Config{Database: "postgres://till@localhost,db2.internal/till"}, "database link"},
		{server.Config{Database: "data/till.db", SandboxPath: "postgres://till@db.internal/till"}, "database link"},
		{server.Config{Database: "postgres://till@db.internal/till?sslmode=require"}, ""},
		{server.Config{Database: "postgres://till@db.internal/till?sslmode=verify-full"}, ""},
		{server.Config{Database: "postgres://till@127.0.0.1/till?sslmode=disable"}, ""},
		{server.Config{Database: "postgres://till@[::1]/till?sslmode=disable"}, ""},
		{server.Config{Database: "postgres://till@localhost/till"}, ""},
		{server.Config{Database: "postgres://till@/till?host=/run/postgresql"}, ""},
		{server.Config{Database: "postgres://till@db1,db2/till?sslmode=verify-full&target_session_attrs=read-write"}, ""},

		{server.Config{Listen: "0.0.0.0:8080"}, "API link"},
		{server.Config{Listen: ":8080"}, "API link"},
		{server.Config{Listen: "[::]:8080"}, "API link"},
		{server.Config{Listen: "203.0.113.7:80"}, "API link"},
		{server.Config{Listen: "pay.example.com:80"}, "API link"},
		{server.Config{Listen: "0.0.0.0:8080", BaseURL: "http://127.0.0.1:8080/v1"}, "API link"},
		{server.Config{Listen: "127.0.0.1:8080", BaseURL: "http://pay.example.com/v1"}, "API link"},
		{server.Config{Listen: "0.0.0.0:8080", BaseURL: "https://pay.example.com/v1"}, ""},
		{server.Config{Listen: "127.0.0.1:8080"}, ""},
		{server.Config{Listen: "[::1]:8080", BaseURL: "http://[::1]:8080/v1"}, ""},
		{server.Config{Listen: "localhost:8080"}, ""},
		{server.Config{Listen: "0.0.0.0:8080", Role: server.RoleWorker}, ""},
		{server.Config{}, ""},
	} {
		var told []string
		for _, e := range server.Exposed(x.c) {
			told = append(told, e.Name)
		}
		if got := strings.Join(told, ", "); got != x.want {
			t.Errorf("%s %s %s %s: told %q, want %q", x.c.Database, x.c.SandboxPath, x.c.Listen, x.c.BaseURL, got, x.want)
		}
	}
}

func TestAStartTellsOfPlainHTTPToOthers(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.Listen = "0.0.0.0:0"
	if log := logged(t, c); !strings.Contains(log, "in plain HTTP") {
		t.Errorf("nothing is said: %s", log)
	}
	c.BaseURL = "https://pay.example.com/v1"
	if log := logged(t, c); strings.Contains(log, "in plain HTTP") {
		t.Errorf("behind a proxy with TLS: %s", log)
	}
}
