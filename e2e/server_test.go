package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till/internal/testport"
)

// startTime is how long a program has to be ready. The machine may be busy.
const startTime = 90 * time.Second

// buildTill builds the program once, unless TILL_BINARY names one.
var buildTill = sync.OnceValues(func() (string, error) {
	if built := os.Getenv("TILL_BINARY"); built != "" {
		return built, nil
	}
	path := filepath.Join(tempFolder, "till")
	build := exec.Command("go", "build", "-o", path, "./cmd/till")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

// till is a running program.
type till struct {
	t      *testing.T
	data   string
	origin string // http://localhost:PORT
	cmd    *exec.Cmd

	environment []string // beside that of the test

	// Of till dev.
	key, client, console string
	liveKey              string
}

// startDev starts till dev on a folder of its own.
func startDev(t *testing.T, args ...string) *till {
	t.Helper()
	s := &till{t: t, data: t.TempDir()}
	s.start(append([]string{"dev", "--data", s.data, "--listen", "127.0.0.1:0", "--rate-limit", "0"}, args...))
	return s
}

// startServe starts till serve on a folder, which may have a database.
func startServe(t *testing.T, data string, args ...string) *till {
	t.Helper()
	return startServeWith(t, nil, data, args...)
}

// startServeWith is startServe with variables of the environment.
func startServeWith(t *testing.T, environment []string, data string, args ...string) *till {
	t.Helper()
	s := &till{t: t, data: data, environment: environment}
	port := freePort(t)
	s.start(append([]string{"serve", "--database", s.database(), "--listen", "127.0.0.1:" + port, "--admin-listen", "", "--log-level", "warn",
		"--base-url", "http://localhost:" + port + "/v1"}, args...))
	return s
}

// freePort returns a port that nobody listens on. Only till serve needs one
// beforehand, for its base address.
func freePort(t *testing.T) string {
	address, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	return port
}

func (s *till) database() string { return filepath.Join(s.data, "till.db") }

func (s *till) start(args []string) {
	s.t.Helper()
	binary, err := buildTill()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(binary, append(args, "--json")...)
	s.cmd.Env = append(os.Environ(), s.environment...)
	var stderr bytes.Buffer
	s.cmd.Stderr = &stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.stop)
	timer := time.AfterFunc(startTime, func() { _ = s.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	timer.Stop()
	var ready struct {
		BaseURL    string `json:"base_url"`
		APIKey     string `json:"api_key"`
		ClientID   string `json:"client_id"`
		ConsoleURL string `json:"console_url"`
		LiveAPIKey string `json:"live_api_key"`
	}
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		s.stop()
		s.t.Fatalf("till %s: %v: %s", args[0], err, stderr.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	s.origin = strings.Replace(strings.TrimSuffix(ready.BaseURL, "/v1"), "127.0.0.1", "localhost", 1)
	s.key, s.client, s.console, s.liveKey = ready.APIKey, ready.ClientID, ready.ConsoleURL, ready.LiveAPIKey
}

// stop ends the program as an operator would.
func (s *till) stop() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Signal(os.Interrupt)
	timer := time.AfterFunc(15*time.Second, func() { _ = s.cmd.Process.Kill() })
	_ = s.cmd.Wait()
	timer.Stop()
	s.cmd = nil
}

// run runs a command beside the server and returns what it prints.
func (s *till) run(args ...string) string {
	s.t.Helper()
	binary, err := buildTill()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(binary, append(args, "--database", s.database())...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("till %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// runJSON runs a command and reads what it prints.
func (s *till) runJSON(into any, args ...string) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.run(append(args, "--json")...)), into); err != nil {
		s.t.Fatal(err)
	}
}

// invite returns the link of an invitation by the command.
func (s *till) invite(args ...string) string {
	s.t.Helper()
	var made struct{ Link string }
	s.runJSON(&made, append([]string{"person", "invite", "--base-url", s.origin + "/v1"}, args...)...)
	return made.Link
}

// api calls the API, which must answer with 2xx.
func (s *till) api(key, method, path string, body, into any) {
	s.t.Helper()
	var b []byte
	if body != nil {
		b, _ = json.Marshal(body) // maps of texts
	}
	r, err := http.NewRequestWithContext(context.Background(), method, s.origin+"/v1"+path, bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode >= 300 {
		err = fmt.Errorf("%s %s", a.Status, text)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
}

type object map[string]any

// pay asks a customer for money and returns the payment's id. more is further
// fields of the request.
func (s *till) pay(phone, amount, reference string, more object) string {
	s.t.Helper()
	body := object{"method": "mtn_momo", "country": "CG", "amount": object{"value": amount, "currency": "XAF"},
		"customer": object{"phone": phone}, "idempotency_key": newUUID()}
	if reference != "" {
		body["reference"] = reference
	}
	for name, value := range more {
		body[name] = value
	}
	var made struct{ ID string }
	s.api(s.key, http.MethodPost, "/payments", body, &made)
	return made.ID
}

// payment is what the stories look at in the API's answer.
type payment struct {
	ID            string
	Status        string
	FailureReason string `json:"failure_reason"`
	Receipt       string `json:"provider_reference"`
}

// until waits for a payment to have a status.
func (s *till) until(id, status string) payment {
	s.t.Helper()
	var p payment
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		s.api(s.key, http.MethodGet, "/payments/"+id, nil, &p)
		if p.Status == status {
			return p
		}
	}
	s.t.Fatalf("the payment is %s, not %s", p.Status, status)
	return p
}

// newUUID draws a UUIDv4, as a client would for its idempotency key.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// untilTrue waits for something outside of a page.
func untilTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}
