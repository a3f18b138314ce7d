package pgtest

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy stands between a program and a PostgreSQL server, and can cut a
// connection at the one moment that matters: around a COMMIT. It reads the
// protocol in the clear only.
type Proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	cuts  []Cut // for the COMMITs to come, in their order
	conns map[net.Conn]bool

	resumed chan struct{} // closed by Resume
	resume  sync.Once
	hanging atomic.Bool
	commits atomic.Int64
	writes  atomic.Int64
	naked   atomic.Int64
}

// Cut says when a connection is cut.
type Cut int

// The moments. The program cannot distinguish the first two, nor the last two.
const (
	Spare        Cut = iota // nothing is cut
	BeforeCommit            // the server never hears of the COMMIT
	AfterCommit             // the server has committed, and its answer is lost
	HoldBefore              // the server hears of the COMMIT after Resume
	HoldAfter               // the server has committed, and its answer comes after Resume
)

// NewProxy listens for connections to the server of a URL and returns a URL
// that leads through it.
func NewProxy(server string) (p *Proxy, through string, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	p = &Proxy{listener: l, server: u.Host, conns: make(map[net.Conn]bool), resumed: make(chan struct{})}
	if u.Port() == "" {
		p.server = net.JoinHostPort(u.Hostname(), "5432")
	}
	u.Host = l.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	go p.accept()
	return p, u.String(), nil
}

// CutNext cuts the connections of the next COMMITs, the first one as the
// first cut says and so on.
func (p *Proxy) CutNext(cuts ...Cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts = cuts
}

// Resume lets go of what is held, for good.
func (p *Proxy) Resume() { p.resume.Do(func() { close(p.resumed) }) }

// Hang makes new connections meet silence, as a server does that is overrun.
// The ones that there are stay as they are.
func (p *Proxy) Hang(on bool) { p.hanging.Store(on) }

// Commits returns how many COMMITs came by.
func (p *Proxy) Commits() int64 { return p.commits.Load() }

// Writes returns how many INSERTs, UPDATEs and DELETEs came by, and how many of
// them came outside of BEGIN and COMMIT.
func (p *Proxy) Writes() (all, naked int64) { return p.writes.Load(), p.naked.Load() }

// CutAll cuts every connection that there is now.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.listener.Close()
	p.Resume()
	p.CutAll()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.hanging.Load() {
			p.track(client, true)
			continue
		}
		go p.serve(client)
	}
}

// nextCut takes the cut of the COMMIT that has just come by.
func (p *Proxy) nextCut() Cut {
	p.commits.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.cuts) == 0 {
		return Spare
	}
	c := p.cuts[0]
	p.cuts = p.cuts[1:]
	return c
}

func (p *Proxy) track(c net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.conns[c] = true
		return
	}
	delete(p.conns, c)
	c.Close()
}

func (p *Proxy) serve(client net.Conn) {
	p.track(client, true)
	defer p.track(client, false)
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	var cut atomic.Int32 // the Cut of the COMMIT whose answer is awaited
	answered := make(chan struct{})
	go func() {
		defer client.Close() // so that a server that ends is noticed
		defer close(answered)
		p.answer(server, client, &cut)
	}()
	from := bufio.NewReader(client)
	spoken := speech{texts: make(map[string]string)}
	for first := true; ; first = false {
		m, err := message(from, first)
		if err != nil {
			return
		}
		var text string
		if !first {
			text = spoken.runs(m)
		}
		p.count(&spoken, text)
		if text == "COMMIT" {
			c := p.nextCut()
			cut.Store(int32(c))
			switch c {
			case BeforeCommit:
				return
			case HoldBefore:
				<-p.resumed
			}
		}
		if _, err := server.Write(m); err != nil {
			return
		}
		if Cut(cut.Load()) == AfterCommit && (m[0] == 'Q' || m[0] == 'S') { // the server has all it needs to answer
			<-answered
			return
		}
	}
}

// speech is what a client has said so far, as far as it matters.
type speech struct {
	texts  map[string]string // of prepared statements, by their names
	inside bool              // it has said BEGIN
}

// runs returns the statement that a client's message runs: in words, or by the
// name under which it was prepared; "" if it runs none.
func (sp *speech) runs(m []byte) string {
	switch m[0] {
	case 'Q':
		text, _, _ := strings.Cut(string(m[5:]), "\x00")
		return text
	case 'P': // the name, then the words
		name, rest, _ := strings.Cut(string(m[5:]), "\x00")
		sp.texts[name], _, _ = strings.Cut(rest, "\x00")
	case 'B': // the portal, then the name
		_, rest, _ := strings.Cut(string(m[5:]), "\x00")
		name, _, _ := strings.Cut(rest, "\x00")
		return sp.texts[name]
	}
	return ""
}

var writing = regexp.MustCompile(`\b(INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b`)

// count counts a write.
func (p *Proxy) count(sp *speech, text string) {
	switch {
	case strings.HasPrefix(text, "BEGIN"):
		sp.inside = true
	case text == "COMMIT", text == "ROLLBACK":
		sp.inside = false
	case writing.MatchString(text):
		p.writes.Add(1)
		if !sp.inside {
			p.naked.Add(1)
		}
	}
}

// answer brings the server's words to the client, until the end or until an
// answer that is to be lost is complete.
func (p *Proxy) answer(server, client net.Conn, cut *atomic.Int32) {
	from := bufio.NewReader(server)
	for {
		m, err := message(from, false)
		if err != nil {
			return
		}
		switch Cut(cut.Load()) {
		case AfterCommit:
			if m[0] == 'Z' { // ready for the next query: the COMMIT is done
				return
			}
			continue
		case HoldAfter:
			p.hold(client)
		}
		if _, err := client.Write(m); err != nil {
			return
		}
	}
}

// hold waits for Resume. Now and then the client is sent a notice, so that it
// goes on waiting too: it is slow that is tried here, not silence.
func (p *Proxy) hold(client net.Conn) {
	notice := []byte("N\x00\x00\x00\x00SNOTICE\x00C00000\x00Mwait\x00\x00")
	binary.BigEndian.PutUint32(notice[1:], uint32(len(notice)-1))
	for {
		select {
		case <-p.resumed:
			return
		case <-time.After(2 * time.Second):
			client.Write(notice)
		}
	}
}

// message reads one message with its head. The first one of a client has no
// letter.
func message(r *bufio.Reader, first bool) ([]byte, error) {
	head := 5
	if first {
		head = 4
	}
	m := make([]byte, head)
	if _, err := io.ReadFull(r, m); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(m[head-4:])) - 4
	if n < 0 || n > 1<<30 {
		return nil, io.ErrUnexpectedEOF
	}
	m = append(m, make([]byte, n)...)
	_, err := io.ReadFull(r, m[head:])
	return m, err
}
