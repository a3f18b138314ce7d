package conform

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"till/internal/testport"
)

// service is a running till dev.
type service struct {
	binary string
	data   string
	listen string
	base   string // its address with /v1
	window string // for the customer's approval
	cmd    *exec.Cmd
}

// startTime is how long a program has to be ready. The machine may be busy.
const startTime = 90 * time.Second

// startService starts a till dev on a folder. Without limits of rate, because
// the suite is many shops at once.
func startService(binary, data string) (*service, error) {
	return startServiceFor("3s", binary, data)
}

// startServiceFor starts one whose customers have so much time. A few seconds let payments
// expire soon, and on a busy machine also those that should not.
func startServiceFor(window, binary, data string) (*service, error) {
	listen, err := testport.Free() // it may be started again
	if err != nil {
		return nil, err
	}
	s := &service{binary: binary, data: data, listen: listen, window: window}
	return s, s.start()
}

func (s *service) start() error {
	s.cmd = exec.Command(s.binary, "dev", "--data", s.data, "--listen", s.listen, "--json", "--rate-limit", "0", "--approval-window", s.window)
	var stderr bytes.Buffer
	s.cmd.Stderr = &stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	var ready struct {
		BaseURL string `json:"base_url"`
	}
	timer := time.AfterFunc(startTime, func() { _ = s.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	timer.Stop()
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		_ = s.stop()
		return fmt.Errorf("till dev: %w: %s", err, stderr.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	s.base = ready.BaseURL
	s.listen = ready.BaseURL[len("http://") : len(ready.BaseURL)-len("/v1")]
	return nil
}

// stop ends the service as an operator would.
func (s *service) stop() error {
	if s.cmd == nil || s.cmd.Process == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(os.Interrupt)
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		_ = s.cmd.Process.Kill()
		<-done
	}
	s.cmd = nil
	return nil
}

// till runs a command beside the service and reads its JSON.
func (s *service) till(into any, args ...string) error {
	args = append(args, "--database", filepath.Join(s.data, "till.db"), "--json")
	out, err := exec.Command(s.binary, args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return fmt.Errorf("till %v: %w", args[:2], err)
	}
	return json.Unmarshal(out, into)
}

// client makes a client of a scenario's own, so that its books are its own.
func (s *service) client(payouts bool) (id, key string, err error) {
	var made struct {
		ClientID string `json:"client_id"`
		APIKey   string `json:"api_key"`
	}
	if err := s.till(&made, "client", "create", "--name", "suite", "--mode", "test"); err != nil || !payouts {
		return made.ClientID, made.APIKey, err
	}
	err = s.till(&made, "key", "create", "--client", made.ClientID, "--scopes",
		"payments:read,payments:write,payouts:read,payouts:write,refunds:write,wallets:read,webhooks:manage,keys:manage")
	return made.ClientID, made.APIKey, err
}

// driver is a running driver.
type driver struct {
	program []string // with its arguments
	mu      sync.Mutex
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

var errDied = errors.New("the driver died")

func (d *driver) start() error {
	d.cmd = exec.Command(d.program[0], d.program[1:]...)
	d.cmd.Stderr = os.Stderr
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	d.out = bufio.NewScanner(out)
	d.out.Buffer(nil, 64<<20)
	return d.cmd.Start()
}

// do sends a command and waits for its result.
func (d *driver) do(ctx context.Context, command map[string]any) (map[string]any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	line, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	process := d.cmd.Process
	stop := context.AfterFunc(ctx, func() { _ = process.Kill() })
	defer stop()
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		return nil, errDied
	}
	if !d.out.Scan() {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%v: no result in time", command["do"])
		}
		return nil, errDied
	}
	var result map[string]any
	return result, json.Unmarshal(d.out.Bytes(), &result)
}

// kill ends the driver without a word.
func (d *driver) kill() {
	if d.cmd == nil || d.cmd.Process == nil {
		return
	}
	_ = d.cmd.Process.Kill()
	_ = d.in.Close()
	_ = d.cmd.Wait()
}
