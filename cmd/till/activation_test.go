package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"till/cmd/till/internal/cli"
)

// unit is a service as systemd runs it: the socket is opened before the program, and
// the program reports its state.
type unit struct {
	t      *testing.T
	dir    string
	socket *os.File
	base   string
	admin  string
	notify *net.UnixConn

	mu   sync.Mutex
	told []string
}

func newUnit(t *testing.T) *unit {
	t.Helper()
	u := &unit{t: t, dir: t.TempDir()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if u.socket, err = l.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.socket.Close() })
	u.base = "http://" + l.Addr().String() + "/v1"
	u.admin = keptAddr(t)
	if u.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(u.dir, "notify"), Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.notify.Close() })
	go func() {
		b := make([]byte, 256)
		for {
			n, err := u.notify.Read(b)
			if err != nil {
				return
			}
			u.mu.Lock()
			u.told = append(u.told, string(b[:n]))
			u.mu.Unlock()
		}
	}()
	return u
}

func (u *unit) has(state string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Contains(u.told, state)
}

func (u *unit) await(what string, ok func() bool) {
	u.t.Helper()
	for end := time.Now().Add(waitTimeout); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			u.t.Fatalf("%s does not come; told %v", what, u.told)
		}
	}
}

// start starts the program with the socket. The shell writes the process id that the
// socket is for, as systemd does.
func (u *unit) start(args ...string) *exec.Cmd {
	u.t.Helper()
	path, err := exec.LookPath("till")
	if err != nil {
		u.t.Fatal(err)
	}
	u.mu.Lock()
	u.told = nil
	u.mu.Unlock()
	cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, path, "serve", "--database", filepath.Join(u.dir, "till.db"),
		"--admin-listen", u.admin, "--rate-limit", "0", "--listen", "127.0.0.1:1"}, args...)...)
	cmd.Env = append(os.Environ(), "LISTEN_FDS=1", "LISTEN_FDNAMES=api", "NOTIFY_SOCKET="+filepath.Join(u.dir, "notify"), "WATCHDOG_USEC=200000")
	cmd.ExtraFiles = []*os.File{u.socket}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { cmd.Process.Kill() })
	u.await("READY=1", func() bool { return u.has("READY=1") })
	return cmd
}

// Restarts under load refuse nobody: who connects while no process runs waits in the
// socket.
func TestARestartRefusesNobody(t *testing.T) {
	t.Parallel()
	u := newUnit(t)
	server := u.start()
	var made struct {
		Key string `json:"api_key"`
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"client", "create", "--name", "Shop", "--mode", "test", "--json", "--database", filepath.Join(u.dir, "till.db")}, &out, io.Discard); code != 0 || json.Unmarshal(out.Bytes(), &made) != nil {
		t.Fatalf("no client: %d %s", code, &out)
	}
	// A connection for each request: one that is kept open may be closed by any server
	// at the moment at which a client uses it.
	client := &http.Client{Timeout: waitTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	var answered, refused atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				body := fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"100","currency":"XAF"},"idempotency_key":"%s","customer":{"phone":"242061234567"}}`, newUUID())
				r, _ := http.NewRequest("POST", u.base+"/payments", strings.NewReader(body))
				r.Header.Set("X-Api-Key", made.Key)
				r.Header.Set("Content-Type", "application/json")
				resp, err := client.Do(r)
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				if err != nil || resp.StatusCode != http.StatusAccepted {
					refused.Add(1)
					t.Errorf("a request was refused: %v, %v", resp, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	for range 3 {
		before := answered.Load()
		u.await("requests", func() bool { return answered.Load() > before+50 || refused.Load() > 0 })
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := server.Wait(); err != nil {
			t.Errorf("a stop ends with %v", err)
		}
		if !u.has("STOPPING=1") || !u.has("WATCHDOG=1") {
			t.Errorf("systemd was told %v", u.told)
		}
		server = u.start()
	}
	close(stop)
	load.Wait()
	server.Process.Signal(syscall.SIGTERM)
	server.Wait()
	t.Logf("%d requests over three restarts, %d refused", answered.Load(), refused.Load())
}

// A stop says so at once, and goes on serving for as long as it drains.
func TestAStopDrains(t *testing.T) {
	t.Parallel()
	u := newUnit(t)
	const drain = 8 * time.Second // what is asked meanwhile takes a busy machine its time
	server := u.start("--drain", drain.String())
	health := func() (int, string) {
		var out bytes.Buffer
		code := run(t.Context(), []string{"health", "--admin-listen", u.admin}, &out, &out)
		return code, strings.TrimSpace(out.String())
	}
	if code, said := health(); code != 0 || said != "ready" {
		t.Errorf("it is %d %s", code, said)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	u.await("STOPPING=1", func() bool { return u.has("STOPPING=1") })
	if code, said := health(); code != cli.ExitRefused || said != "stopping" {
		t.Errorf("while it drains it is %d %s", code, said)
	}
	resp, err := http.Get(u.base + "/openapi.json")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("while it drains a request gets %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	if err := server.Wait(); err != nil || time.Since(begun) < drain {
		t.Errorf("it ended after %s with %v", time.Since(begun), err)
	}
	if code, said := health(); code != cli.ExitUnable || !strings.Contains(said, "does not answer") {
		t.Errorf("when it has stopped it is %d %s", code, said)
	}
}

// A socket that nobody knows, or none at all behind the promise, is a clear word.
func TestASocketOfAnUnknownName(t *testing.T) {
	t.Parallel()
	u := newUnit(t)
	path, err := exec.LookPath("till")
	if err != nil {
		t.Fatal(err)
	}
	for names, want := range map[string]string{"other": `a socket of the name "other"`, "api:api": "two sockets of the name"} {
		cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, path, "serve", "--database", filepath.Join(u.dir, "till.db"), "--admin-listen", "")
		cmd.Env = append(os.Environ(), fmt.Sprintf("LISTEN_FDS=%d", strings.Count(names, ":")+1), "LISTEN_FDNAMES="+names)
		cmd.ExtraFiles = []*os.File{u.socket, u.socket}
		out, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(bufio.NewReader(out))
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != cli.ExitUnable || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v: %s", names, err, text)
		}
	}
}

// SIGHUP reads the log level again. A mistake in the file is logged, and the level stays.
func TestAHangupReadsTheLogLevel(t *testing.T) {
	t.Parallel()
	u := newUnit(t)
	file := filepath.Join(u.dir, "till.toml")
	level := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("log_level = \""+text+"\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	get := func(url string) string {
		t.Helper()
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	log := func() string { return get("http://" + u.admin + "/debug/log") }
	level("info")
	server := u.start("--config", file)
	hangUp := func(done string) {
		t.Helper()
		if err := server.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		u.await(done, func() bool { get(u.base + "/openapi.json"); return strings.Contains(log(), done) })
	}
	get(u.base + "/openapi.json")
	if strings.Contains(log(), "level=DEBUG") {
		t.Fatal("a request is logged at info already")
	}
	level("loud")
	hangUp("log level not read")
	if strings.Contains(log(), "level=DEBUG") {
		t.Error("a mistake in the file has changed the level")
	}
	level("debug")
	hangUp("level=DEBUG")
	server.Process.Signal(syscall.SIGTERM)
	if err := server.Wait(); err != nil {
		t.Errorf("a stop ends with %v", err)
	}
}
