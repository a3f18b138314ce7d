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

// Hints between instances on PostgreSQL use NOTIFY, after the commit and never inside
// Till's transactions, on connections of their own. A notification is "<instance>
// <client>,<client>…", or "<instance> *" for all.

const (
	// minNotifyInterval is the least time between two notifications. The first is sent at
	// once; later ones are sent together. Each costs two sessions of the server and two
	// goroutines here about as much as a create.
	minNotifyInterval = 25 * time.Millisecond

	// maxNotified is how many clients one notification names. PostgreSQL accepts less than
	// 8000 bytes, and a client takes 33.
	maxNotified = 200

	// hintTimeout limits every call: a late hint is useless.
	hintTimeout = 2 * time.Second

	// hintPause is the pause after a connection was lost.
	hintPause = 250 * time.Millisecond

	everybody = "*"
)

// Notifier sends hints to other instances, and receives theirs.
type Notifier struct {
	hub     *Hub
	connect Connector
	me      string // identifies our own notifications

	mu      sync.Mutex
	clients map[till.ID]bool // to be sent
	all     bool
	probe   bool // send a notification, even without clients
	started bool
	resting bool // send is pausing and will check again by itself
	closed  bool
	wake    chan struct{}

	sender sync.WaitGroup
	warn   sync.Once
}

// Connector opens a connection with parameters besides those of the URL.
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

// put queues clients to notify of; nil is a probe. It never blocks.
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

// warm opens the connection while a commit is still under way. A command has none yet, and
// opening one takes longer than sending a hint.
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

// close sends what is queued, in limited time: a command that ends must not lose its hint.
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
				// The subscribers poll meanwhile. When the connection is back, all are
				// notified.
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

// sendOne sends one notification, on a new connection if needed. It replaces once a
// connection that died while it was idle.
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
		// NOTIFY is a utility statement, which takes no parameters. The texts of take and
		// hintConn contain no quotes.
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

// listen receives notifications until ctx ends. After a lost connection it notifies of all
// clients, because hints may have been missed.
func (p *Notifier) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := p.listenOnce(ctx)
		if p.hub.live.Swap(false) {
			p.hub.notify(nil, true) // hints may be missed from here on, so that no subscriber relies on them
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
	// Behind a pooler LISTEN succeeds but nothing arrives. Our own notification, sent on
	// the other connection, proves that hints arrive.
	p.put(nil)
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		p.receive(n.Payload)
	}
}

// receive handles one notification.
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
			clients = nil // all clients, or a newer release's form
			break
		}
		clients = append(clients, id)
	}
	if names != "" {
		p.hub.notify(clients, true)
	}
}

// hintConn opens a connection for hints and returns the channel of its schema. A hint that
// is lost in a crash does no harm, so nothing waits for the disk.
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
	sum := sha256.Sum256([]byte(schema)) // a channel's name is short, a schema's may be long
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
