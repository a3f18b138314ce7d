package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"till/internal/dev/loadgen"
)

const (
	startTimeout      = 30 * time.Second       // what a server may take to be ready
	stopTimeout       = 20 * time.Second       // and to end before it is killed
	readyPollInterval = 2 * time.Millisecond   // between two checks whether it is ready
	idleAfter         = 500 * time.Millisecond // after which a started server is idle
	ticksPerSec       = 100                    // of the CPU times in /proc, on every Linux
)

// process is a server that was started and is to be stopped.
type process struct {
	name   string
	addr   string
	apiKey string
	cmd    *exec.Cmd
	stdin  *os.File // held open: a base server ends when this end closes
	log    string   // the file that has its output
	done   chan struct{}
	err    error // how it ended, once done is closed

	readyIn time.Duration // from its start to its first good answer
	idle    int64         // resident bytes before any load
}

// start runs a program that serves on addr and waits until it answers.
func start(ctx context.Context, name, addr, apiKey, logFile, program string, args ...string) (*process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p := &process{name: name, addr: addr, apiKey: apiKey, stdin: stdin, log: logFile, done: make(chan struct{})}
	p.cmd = exec.Command(program, args...)
	p.cmd.Env = plainEnv()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, out
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		stdin.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	if err := p.awaitReady(ctx, began); err != nil {
		p.stop()
		return nil, fmt.Errorf("%s is not ready: %w%s", name, err, p.tail())
	}
	return p, nil
}

// awaitReady polls until the first good answer, and records how long that
// took.
func (p *process) awaitReady(ctx context.Context, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		_, err := p.total(ctx, "")
		if err == nil {
			p.readyIn = time.Since(began)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %v)", ctx.Err(), err)
		case <-p.done:
			return fmt.Errorf("it ended: %v", p.err)
		case <-time.After(readyPollInterval):
		}
	}
}

// settle waits until the work of starting is over and notes the memory that
// the idle server holds.
func (p *process) settle(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleAfter):
	}
	p.idle = p.memory("VmRSS")
	return nil
}

// total asks the server how many payments there are, with a filter such as
// "&status=success" or none.
func (p *process) total(ctx context.Context, filter string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, loadgen.AnswerTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addr+"/v1/payments?limit=1"+filter, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Api-Key", p.apiKey)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("answer %s", resp.Status)
	}
	var page struct {
		Total *int64 `json:"total"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		return 0, err
	}
	if page.Total == nil {
		return 0, fmt.Errorf("the list has no total")
	}
	return *page.Total, nil
}

// stop ends the process, gently first. It may be called again.
func (p *process) stop() {
	if p == nil {
		return
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.cmd.Process.Kill()
		<-p.done
	}
}

// processes are those to stop together.
type processes []*process

// add takes what starting a process returned.
func (all *processes) add(p *process, err error) (*process, error) {
	if err == nil {
		*all = append(*all, p)
	}
	return p, err
}

func (all *processes) stop() {
	for _, p := range *all {
		p.stop()
	}
}

// tail returns the end of what the process wrote, for an error message.
func (p *process) tail() string {
	b, err := os.ReadFile(p.log)
	if b = bytes.TrimSpace(b); err != nil || len(b) == 0 {
		return ""
	}
	return "\n" + string(b[max(0, len(b)-2000):])
}

// cpu returns the CPU time that the process has used, 0 where unknown.
func (p *process) cpu() time.Duration { return statOf(p.cmd.Process.Pid).ticks(11, 12) }

// written returns the bytes that the process has written to the disk, 0 where
// unknown.
func (p *process) written() int64 {
	n, _ := strconv.ParseInt(procLine(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "io"), "write_bytes"), 10, 64)
	return n
}

// memory returns a figure of /proc/PID/status in bytes, 0 where unknown.
func (p *process) memory(name string) int64 {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// freeAddr returns a loopback address that is free at the moment.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
