package loadgen

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// The limits of any flood.
const (
	maxFlood     = 2500 // connections
	maxFloodTime = 5 * time.Minute
)

// Flood is a load that ignores its answers: each connection sends its next request as soon
// as it gets any answer, until ctx ends.
type Flood struct {
	Addr        string
	Connections int
	// From are this machine's addresses that connections come from, in turns; none means
	// one that the system chooses.
	From []netip.Addr
	// Next returns the next whole request of a connection; it is valid until the
	// following call. Each connection has its own.
	Next func() func() []byte
	// OnConnected is called when all connections are open.
	OnConnected func()
}

// Run floods the server and returns how many answers it got, by status. It
// returns no error when ctx ends.
func (f Flood) Run(ctx context.Context) (map[int]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, maxFloodTime)
	defer cancel()
	conns, err := f.dial(ctx)
	defer closeAll(conns)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { closeAll(conns) })()
	if f.OnConnected != nil {
		f.OnConnected()
	}
	var mu sync.Mutex
	answers := make(map[int]int64)
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			got := requestUntilClosed(c, f.Next())
			mu.Lock()
			defer mu.Unlock()
			for status, n := range got {
				answers[status] += n
			}
		})
	}
	wg.Wait()
	if ctx.Err() == nil {
		return answers, fmt.Errorf("the server ended every connection")
	}
	return answers, nil
}

// requestUntilClosed sends requests until the connection ends.
func requestUntilClosed(c net.Conn, next func() []byte) map[int]int64 {
	answers, r := make(map[int]int64), reader{src: c}
	for {
		if _, err := c.Write(next()); err != nil {
			return answers
		}
		status, _, err := r.next()
		if err != nil {
			return answers
		}
		answers[status]++
	}
}

func (f Flood) dial(ctx context.Context) ([]net.Conn, error) {
	var conns []net.Conn
	for i := range min(f.Connections, maxFlood) {
		d := net.Dialer{Timeout: 5 * time.Second}
		if len(f.From) > 0 {
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(f.From[i%len(f.From)], 0))
		}
		c, err := d.DialContext(ctx, "tcp", f.Addr)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}
