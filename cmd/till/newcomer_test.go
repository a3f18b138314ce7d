package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a newcomer pastes, and how long it may take from the clone to a paid order. The
// compiler's cache is warm, as it is after the first start.
const (
	newcomerLines = 12
	newcomerTime  = 60 * time.Second
)

// A newcomer pastes the quick start of a language into a terminal in a fresh clone,
// and an order is paid. TestGuides runs the same blocks elsewhere; here nothing is
// prepared.
func TestNewcomer(t *testing.T) {
	pages, err := filepath.Glob("../../docs/pages/en/start-*.md")
	if err != nil || len(pages) != 5 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		page = "docs/pages/en/" + filepath.Base(page)
		var pasted string
		for _, b := range readBlocks(t, page) {
			if b.lang == "sh" {
				pasted += b.text
			}
		}
		if n := strings.Count(pasted, "\n"); n == 0 || n > newcomerLines {
			t.Errorf("%s: %d lines are pasted; the limit is %d", page, n, newcomerLines)
		}
		if os.Getenv("TILL_NEWCOMER") != "" {
			t.Run(filepath.Base(page), func(t *testing.T) { pasteInClone(t, pasted) })
		}
	}
}

// pasteInClone runs what is pasted in a fresh clone.
func pasteInClone(t *testing.T, pasted string) {
	begin := time.Now()
	clone := filepath.Join(t.TempDir(), "till")
	if out, err := exec.Command("git", "clone", "-q", "../..", clone).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g := &guide{t: t, ports: map[string]string{}}
	address := "127.0.0.1:" + g.port("8080")
	pasted = guideAddress.ReplaceAllString(pasted, address)
	ctx, cancel := context.WithTimeout(t.Context(), 2*newcomerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", pasted)
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "TILL_LISTEN="+address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with the service that it starts
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file // a file: the service that goes on holds it open
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	took := time.Since(begin)
	text, _ := os.ReadFile(file.Name())
	if out := string(text); err != nil || !strings.Contains(out, "ship: ORDER-1042") && !strings.Contains(out, `"status":"success"`) {
		t.Fatalf("no order is paid: %v\n%s", err, out)
	}
	if took > newcomerTime {
		t.Errorf("it took %s", took)
	}
	t.Logf("%d lines, a paid order after %s", strings.Count(pasted, "\n"), took.Round(100*time.Millisecond))
}
