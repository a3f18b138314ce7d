package hint

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"till"
)

// Hints between instances on PostgreSQL: NOTIFY, after the commit and never
// inside Till's transactions, on connections of their own. A notification is
// "<instance> <client>,<client>…", or "<instance> *" for all.

const (
	// minNotifyInterval is the least time between two notifications. The first goes at
	// once; what comes meanwhile goes together. Each is work for two sessions of the
	// server and two goroutines here, about as much as a create.
	minNotifyInterval = 25 * time.Millisecond

	// maxNotified is how many clients one notification names: PostgreSQL takes
	// less than 8000 bytes, and a client is 33.
	maxNotified = 200

	// hintTimeout bounds every call: a hint that is late is worth nothing.
	hintTimeout = 2 * time.Second

	// hintPause is how long to wait after a connection was lost.
	hintPause = 250 * time.Millisecond

	everybody = "*"
)

// Notifier sends hints to other instances, and receives theirs.
type Notifier struct {
	hub     *Hub
	connect Connector
	me      string // tells our own notifications from others'

	mu      sync.Mutex
	clients map[till.ID]bool // to be sent
	all     bool
	probe   bool // send, even if there is nobody to name
	started bool
	resting bool // it looks again when it has rested; until then a ring would only disturb it
	closed  bool
	wake    chan struct{}

	sender sync.WaitGroup
	warn   sync.Once
}

// Connector opens a connection with more parameters than the URL's.
type Connector func(ctx context.Context, parameters map[string]string) (*pgx.Conn, error)

// UsePostgres makes the Hub send and receive hints by NOTIFY.
func (h *Hub) UsePostgres(connect Connector) {
	h.notifier = newNotifier(h, connect)
	h.watch = h.notifier.listen
}

func newNotifier(h *Hub, connect Connector) *Notifier {
	var me [8]byte
	rand.Read(me[:])
	return &Notifier{hub: h, connect: connect, me: hex.EncodeToString(me[:]), clients: make(map[till.ID]bool), wake: make(chan struct{}, 1)}
}

// put takes in clients to notify of; nil is a probe. It never blocks.
func (p *Notifier) put(clients []till.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.probe = true
	p.all = p.all || len(p.clients)+len(clients) > maxNotified
	for _, id := range clients {
		if !p.all {
			p.clients[id] = true
		}
	}
	p.start()
	if !p.resting {
		p.ring()
	}
}

// warm makes the connection while a commit is still under way: in a command
// there is none yet, and to make one takes longer than to send a hint.
func (p *Notifier) warm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.start()
	}
}

func (p *Notifier) start() {
	if !p.started {
		p.started = true
		p.sender.Go(p.send)
	}
}

func (p *Notifier) ring() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// take returns the next notification, "" if there is none.
func (p *Notifier) take() (payload string, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.probe {
		return "", p.closed
	}
	var b strings.Builder
	b.WriteString(p.me + " ")
	if p.all {
		b.WriteString(everybody)
	}
	sep := ""
	for id := range p.clients {
		if p.all {
			break
		}
		b.WriteString(sep + hex.EncodeToString(id[:]))
		sep = ","
	}
	clear(p.clients)
	p.all, p.probe = false, false
	return b.String(), p.closed
}

// close sends what waits, in bounded time: a command that ends must not keep
// its hint for itself.
func (p *Notifier) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.ring()
	p.sender.Wait()
}

// send runs until close.
func (p *Notifier) send() {
	dial, cancel := context.WithTimeout(context.Background(), hintTimeout)
	conn, channel, _ := p.hintConn(dial) // if it fails, the first hint tries again
	cancel()
	defer func() { hangUp(conn) }()
	for {
		payload, closed := p.take()
		if payload != "" {
			var err error
			if conn, channel, err = p.sendOne(conn, channel, payload); err != nil && !closed {
				// Whoever was to be told looks by itself meanwhile, and is told of
				// everybody when there is a way again.
				p.mu.Lock()
				p.all, p.probe = true, true
				p.mu.Unlock()
				p.rest(hintPause)
				continue
			}
			if !closed {
				p.rest(minNotifyInterval)
			}
			continue
		}
		if closed {
			return
		}
		<-p.wake
	}
}

// rest waits, unless the Hub is being closed.
func (p *Notifier) rest(d time.Duration) {
	p.setResting(true)
	defer p.setResting(false)
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return
		case <-p.wake:
			p.mu.Lock()
			closed := p.closed
			p.mu.Unlock()
			if closed {
				return
			}
		}
	}
}

func (p *Notifier) setResting(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting = yes
}

// sendOne sends one notification, on a new connection if need be. A connection
// that has died while nobody used it is replaced once.
func (p *Notifier) sendOne(conn *pgx.Conn, channel, payload string) (*pgx.Conn, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), hintTimeout)
	defer cancel()
	for {
		fresh := conn == nil
		var err error
		if fresh {
			if conn, channel, err = p.hintConn(ctx); err != nil {
				return nil, "", err
			}
		}
		// A word of the server's own, which it need not plan. There is no quote in
		// what take and hintConn make.
		if _, err = conn.PgConn().Exec(ctx, `NOTIFY `+channel+`, '`+payload+`'`).ReadAll(); err == nil {
			return conn, channel, nil
		}
		hangUp(conn)
		conn = nil
		if fresh {
			return nil, "", err
		}
	}
}

// listen receives notifications until ctx ends. When the connection was lost and there is one
// again, anything may have happened in between.
func (p *Notifier) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := p.listenOnce(ctx)
		if p.hub.live.Swap(false) {
			p.hub.notify(nil, true) // so that nobody trusts in silence
		}
		if err != nil && ctx.Err() == nil {
			p.warn.Do(func() {
				p.hub.log.Warn("other instances' hints are not heard; the database is asked more often until they are", "error", err)
			})
		}
		select {
		case <-time.After(hintPause):
		case <-ctx.Done():
		}
	}
}

func (p *Notifier) listenOnce(ctx context.Context) error {
	dial, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	conn, channel, err := p.hintConn(dial)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	if _, err := conn.Exec(dial, `LISTEN `+channel); err != nil {
		return err
	}
	p.hub.notify(nil, true)
	// Behind a pooler LISTEN succeeds and nothing ever comes. Our own word,
	// sent on the other connection, shows that the way is open.
	p.put(nil)
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		p.receive(n.Payload)
	}
}

// receive takes in one notification.
func (p *Notifier) receive(payload string) {
	from, names, _ := strings.Cut(payload, " ")
	if from == p.me {
		p.hub.live.Store(true)
		return
	}
	clients := make([]till.ID, 0, len(names)/33+1)
	for text := range strings.SplitSeq(names, ",") {
		var id till.ID
		if n, err := hex.Decode(id[:], []byte(text)); err != nil || n != len(id) {
			clients = nil // everybody, or a word of a newer release
			break
		}
		clients = append(clients, id)
	}
	if names != "" {
		p.hub.notify(clients, true)
	}
}

// hintConn opens a connection for hints and returns the channel of the schema
// that it uses. A hint that is lost with a crash is no loss, so nothing waits
// for the disk.
func (p *Notifier) hintConn(ctx context.Context) (*pgx.Conn, string, error) {
	conn, err := p.connect(ctx, map[string]string{"synchronous_commit": "off"})
	if err != nil {
		return nil, "", err
	}
	var schema string
	err = conn.QueryRow(ctx, `SELECT current_schema(), set_config('application_name', 'till hints ' || current_schema(), false)`, pgx.QueryExecModeExec).
		Scan(&schema, nil)
	if err != nil {
		hangUp(conn)
		return nil, "", err
	}
	sum := sha256.Sum256([]byte(schema)) // a channel's name is short, a schema's may not be
	return conn, "till_" + hex.EncodeToString(sum[:8]), nil
}

func hangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn.Close(ctx)
}
