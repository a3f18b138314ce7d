package api

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"till"
	"till/account"
	"till/internal/jsonx"
	"till/internal/trace"
	"till/store"
)

// exchange is one request and its answer. It is the ResponseWriter that the mux passes on,
// so that a handler finds everything in one place.
type exchange struct {
	http.ResponseWriter
	r       *http.Request
	s       *server
	route   *Route
	session *account.Session // nil on routes that need no key
	id      string
	start   time.Time

	query    url.Values
	queryErr error

	in, out   *buffer
	heldBytes []byteHold // given back when the exchange ends
	read      int        // bytes of the rows in the answer
	status    int        // of the answer; 0 until it is written

	from     netip.Addr // see peer
	reason   string     // why it was refused, for the log; "": see the answer's code
	client   till.ID    // the key's client, for the log; zero: unknown
	keyID    string
	logged   bool // the failure has a log line of its own
	mayDelay bool // a refusal may be delayed

	// For the counts and the log.
	code     till.Code // of the error, "" if there is none
	received int       // bytes of the body
	sent     int       // bytes of the answer's body
	waited   bool      // it was a long poll
	caller   trace.Caller
	subject  till.ID // the payment or payout that it is about, for the trace
}

// buffer is reused between requests.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 4096)} }}

// maxPooled is the largest buffer that is reused, so that one long list does not keep its
// memory for ever. The longest body fits.
const maxPooled = jsonx.MaxBody + 1

func (c *exchange) release() {
	for _, b := range []*buffer{c.in, c.out} {
		if b != nil && cap(b.b) <= maxPooled {
			buffers.Put(b)
		}
	}
	c.in, c.out = nil, nil
	c.releaseBytes()
}

// body returns the request's body. It is valid until the exchange ends.
func (c *exchange) body() []byte {
	if c.in == nil {
		return nil
	}
	return c.in.b
}

// decode reads the body into v; an empty one equals {}. It rejects members that nobody
// knows, where decodeKnown returns them.
func (c *exchange) decode(v any) error {
	unknown, err := c.decodeKnown(v)
	if err == nil && unknown != nil {
		err = &till.Error{Code: till.CodeValidationFailed, Fields: unknown}
	}
	return err
}

// name returns the route for logs: never the URL, which may contain anything.
func (c *exchange) name() string {
	if c.route == nil {
		return ""
	}
	return c.route.Method + " " + c.route.Path
}

// viewTimeout is how long a read may take, with the wait for a connection.
const viewTimeout = 10 * time.Second

// view runs f on one snapshot of the database.
func (c *exchange) view(f func(ctx context.Context, tx *store.Tx) error) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), viewTimeout)
	defer cancel()
	return c.s.Store.View(ctx, func(tx *store.Tx) error {
		c.countRows(tx)
		return f(ctx, tx)
	})
}

// auditContext returns the context for a client's action that the audit log records: it
// names the request as the cause, and the address.
func (c *exchange) auditContext() context.Context {
	return store.WithCause(c.r.Context(), "request "+c.id+" from "+c.peer().String())
}

// buffer returns an empty buffer for the answer, with room for the rows that were read.
func (c *exchange) buffer() []byte {
	if c.out == nil {
		c.out = buffers.Get().(*buffer)
	}
	return slices.Grow(c.out.b[:0], c.read)
}

var (
	typeJSON    = []string{"application/json"}
	typeProblem = []string{"application/problem+json"}
)

// write writes an answer.
func (c *exchange) write(status int, contentType []string, b []byte) error {
	h := c.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	c.status = status
	c.WriteHeader(status)
	n, _ := c.Write(b) // an error means that the client has gone
	c.sent += n
	return nil
}

// json writes an answer of JSON. b may be the exchange's buffer, grown.
func (c *exchange) json(status int, b []byte) error {
	c.out.b = b
	return c.write(status, typeJSON, b)
}

// empty writes an answer without a body.
func (c *exchange) empty(status int) error {
	c.status = status
	c.WriteHeader(status)
	return nil
}

// paymentID returns the payment id in the path. A malformed id is answered like an unknown
// one.
func (c *exchange) paymentID(notFound till.Code) (till.ID, error) {
	id, err := till.ParseID(c.r.PathValue("payment_id"))
	if err != nil {
		return till.ID{}, &till.Error{Code: notFound}
	}
	return id, nil
}
