package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"till/internal/dev/loadgen"
)

// attack is a flood in a process of its own, so that it does not take the time
// of the measuring process.
type attack struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
	log   string
}

// attackTime is what a flood may take to open its connections, and to end.
const attackTime = 30 * time.Second

// startAttack starts one and waits until its connections are open.
func startAttack(ctx context.Context, in *installation, args ...string) (*attack, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &attack{log: filepath.Join(in.dir, "attack.log")}
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	a.cmd = exec.CommandContext(ctx, self, append([]string{"attack"}, args...)...)
	a.cmd.Env, a.cmd.Stderr = plainEnv(), log
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a.out = bufio.NewReader(out)
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	stuck := time.AfterFunc(attackTime, func() { a.cmd.Process.Kill() })
	defer stuck.Stop()
	if _, err := a.out.ReadString('\n'); err != nil {
		a.cmd.Process.Kill()
		a.cmd.Wait()
		said, _ := os.ReadFile(a.log)
		return nil, fmt.Errorf("the flood did not begin: %w\n%s", err, said)
	}
	return a, nil
}

// stop ends the flood and returns the answers that it got, by status.
func (a *attack) stop() (answers map[string]int64, err error) {
	stuck := time.AfterFunc(attackTime, func() { a.cmd.Process.Kill() })
	defer stuck.Stop()
	a.stdin.Close()
	err = json.NewDecoder(a.out).Decode(&answers)
	return answers, errors.Join(err, a.cmd.Wait())
}

// runAttack is the process: invented keys if there is no key, else what a
// client with that key can ask for.
func runAttack(ctx context.Context, args []string) error {
	runtime.GOMAXPROCS(1)
	f := flag.NewFlagSet("attack", flag.ContinueOnError)
	addr := f.String("addr", "", "address of the server")
	key := f.String("key", "", "key; none: invented ones")
	connections := f.Int("connections", 0, "connections")
	addresses := f.Int("addresses", 1, "addresses of loopback that they come from")
	if err := f.Parse(args); err != nil {
		return err
	}
	flood := loadgen.Flood{Addr: *addr, Connections: *connections, OnConnected: func() { fmt.Println("begun") }}
	for i := range *addresses {
		flood.From = append(flood.From, netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i) + 1}))
	}
	flood.Next = func() func() []byte { return inventedKeys(*addr) }
	if *key != "" {
		flood.Next = func() func() []byte { return clientFlood(*addr, *key) }
	}
	answers, err := flood.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

// inventedKeys returns requests with keys that have the right form and that
// nobody has, in the header and, each fourth, four of them in the URL.
func inventedKeys(addr string) func() []byte {
	n := 0
	return func() []byte {
		if n++; n%4 == 0 {
			return fmt.Appendf(nil, "GET /v1/payments?a=%s&b=%s&c=%s&d=%s HTTP/1.1\r\nHost: %s\r\n\r\n", inventKey(), inventKey(), inventKey(), inventKey(), addr)
		}
		return fmt.Appendf(nil, "GET /v1/payouts HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\n\r\n", addr, inventKey())
	}
}

// inventKey returns a key with a good checksum.
func inventKey() string {
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var random [12 + 43]byte
	rand.Read(random[:])
	for i, c := range random {
		random[i] = base62[c%62]
	}
	text := "till_test_" + string(random[:12]) + "_" + string(random[12:])
	sum := make([]byte, 6)
	for i, crc := 5, crc32.ChecksumIEEE([]byte(text)); i >= 0; i, crc = i-1, crc/62 {
		sum[i] = base62[crc%62]
	}
	return text + string(sum)
}

// clientFlood returns creates, lists, and reads for which the key is read
// from the database each time, in turns.
func clientFlood(addr, key string) func() []byte {
	n := 0
	get := func(path string) []byte {
		return fmt.Appendf(nil, "GET /v1%s HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\n\r\n", path, addr, key)
	}
	return func() []byte {
		switch n++; n % 3 {
		case 0:
			return get("/payments?limit=10")
		case 1:
			return get("/payouts?limit=10")
		}
		body := strings.Replace(loadgen.Body, loadgen.KeyPlaceholder, loadgen.NewKey(), 1)
		return fmt.Appendf(nil, "POST /v1/payments HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			addr, key, len(body), body)
	}
}
