package providertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Operation is the purpose of a request on the line.
type Operation string

// The operations.
const (
	Token  Operation = "token"  // fetches a token
	Submit Operation = "submit" // requests money
	Check  Operation = "check"  // reads a request's status
	Other  Operation = "other"
)

// Line is the connection between an adapter and its operator's simulator: a real HTTP
// server in front of the simulator's handler that can lose, delay, cut and forge.
type Line struct {
	server   *httptest.Server
	operator http.Handler
	of       func(*http.Request) Operation

	silent chan struct{} // one value for each request that gets no answer

	mu     sync.Mutex
	next   map[Operation][]Fault
	always map[Operation]Fault
	count  map[Operation]int
}

// Fault is what happens to one request on the line. It may pass the request on to the
// operator.
type Fault func(w http.ResponseWriter, r *http.Request, operator http.Handler)

// maxRequest is how many bytes of a request the line reads.
const maxRequest = 1 << 20

// NewLine opens a line to an operator's handler until the test ends. of returns the purpose
// of each request.
func NewLine(t testing.TB, operator http.Handler, of func(*http.Request) Operation) *Line {
	l := &Line{operator: operator, of: of, silent: make(chan struct{}, 16),
		next: map[Operation][]Fault{}, always: map[Operation]Fault{}, count: map[Operation]int{}}
	l.server = httptest.NewServer(l)
	t.Cleanup(func() {
		l.server.CloseClientConnections()
		l.server.Close()
	})
	return l
}

// URL returns the operator's base URL for the adapter, without a slash at the end.
func (l *Line) URL() string { return l.server.URL }

// Next applies faults to the next requests of the operation, one each.
func (l *Line) Next(op Operation, faults ...Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next[op] = append(l.next[op], faults...)
}

// Always applies a fault to every request of the operation from now on; nil ends it, and
// drops the faults of Next.
func (l *Line) Always(op Operation, f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.always[op] = f
	if f == nil {
		l.next[op] = nil
	}
}

// Count returns how many requests of the operation have come.
func (l *Line) Count(op Operation) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[op]
}

// Down closes the line for good: nothing listens any more.
func (l *Line) Down() {
	l.server.Listener.Close()
	l.server.CloseClientConnections()
}

// ServeHTTP passes a request on, or applies the fault that is due. It reads the request
// first, so that it can pass it on after the sender has gone.
func (l *Line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	op := l.of(r)
	l.mu.Lock()
	l.count[op]++
	fault := l.always[op]
	if queue := l.next[op]; len(queue) > 0 {
		fault, l.next[op] = queue[0], queue[1:]
	}
	l.mu.Unlock()
	if fault == nil {
		l.operator.ServeHTTP(w, r)
		return
	}
	fault(w, r, l.operator)
}

// answered lets the operator act and returns its answer.
func answered(r *http.Request, operator http.Handler) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	operator.ServeHTTP(rec, r.WithContext(context.WithoutCancel(r.Context())))
	return rec
}

// Pass passes the request on, without a fault.
func Pass(w http.ResponseWriter, r *http.Request, operator http.Handler) { operator.ServeHTTP(w, r) }

// Lose loses the request: the connection ends and the operator receives nothing.
func Lose(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// Swallow loses the request silently: there is no answer until the sender hangs up.
func Swallow(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// silence is Swallow or SwallowAnswer, and signals when it has begun.
func (l *Line) silence(acts bool) Fault {
	return func(w http.ResponseWriter, r *http.Request, operator http.Handler) {
		if acts {
			answered(r, operator)
		}
		l.silent <- struct{}{}
		Swallow(w, r, operator)
	}
}

// LoseAnswer loses the answer: the operator acts, and the connection ends.
func LoseAnswer(_ http.ResponseWriter, r *http.Request, operator http.Handler) {
	answered(r, operator)
	panic(http.ErrAbortHandler)
}

// SwallowAnswer loses the answer silently: the operator acts, and there is no answer until
// the sender hangs up.
func SwallowAnswer(_ http.ResponseWriter, r *http.Request, operator http.Handler) {
	answered(r, operator)
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// Hold keeps the request on the line until release is closed, even if its sender has hung
// up; then it arrives. came is closed when the line has it, arrived when the operator has
// acted.
func Hold(came chan<- struct{}, release <-chan struct{}, arrived chan<- struct{}) Fault {
	return func(_ http.ResponseWriter, r *http.Request, operator http.Handler) {
		close(came)
		<-release
		answered(r, operator)
		close(arrived)
		panic(http.ErrAbortHandler)
	}
}

// Answer is a forged answer. The operator does not see the request.
type Answer struct {
	Status int
	Type   string // its Content-Type; "" means application/json
	Body   string
}

// Forge returns a forged answer, with any status, also one that a proper server does not
// send.
func Forge(a Answer) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		kind := a.Type
		if kind == "" {
			kind = "application/json"
		}
		if a.Status >= 200 {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(a.Status)
			io.WriteString(w, a.Body)
			return
		}
		raw(w, func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 %03d Forged\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
				a.Status, kind, len(a.Body), a.Body)
		})
	}
}

// Limit answers that there were too many calls, with a Retry-After, "" for none. The
// operator does not see the request.
func Limit(after string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"statusCode":429,"message":"Rate limit is exceeded."}`)
	}
}

// Rewrite lets the operator act and changes its answer.
func Rewrite(change func(status int, body []byte) (int, []byte)) Fault {
	return func(w http.ResponseWriter, r *http.Request, operator http.Handler) {
		rec := answered(r, operator)
		status, body := change(rec.Code, rec.Body.Bytes())
		for name, values := range rec.Header() {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(status)
		w.Write(body)
	}
}

// CutOff lets the operator act and ends the connection after n bytes of the answer's body,
// although more were announced.
func CutOff(n int) Fault {
	return func(w http.ResponseWriter, r *http.Request, operator http.Handler) {
		rec := answered(r, operator)
		raw(w, func(conn net.Conn) {
			body := rec.Body.Bytes()
			fmt.Fprintf(conn, "HTTP/1.1 %03d Cut\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				rec.Code, len(body)+1, body[:min(n, len(body))])
		})
	}
}

// Huge answers with a body of n bytes that begins with the text. It counts the bytes that
// were read.
func Huge(status int, begin string, n int64, taken *atomic.Int64) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		raw(w, func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 %03d Huge\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, n, begin)
			piece := bytes.Repeat([]byte{' '}, 64<<10)
			for sent := int64(len(begin)); sent < n; {
				m, err := conn.Write(piece[:min(n-sent, int64(len(piece)))])
				sent += int64(m)
				taken.Store(sent)
				if err != nil {
					return
				}
			}
		})
	}
}

// Drip answers with the text, a byte at a time, and never ends.
func Drip(status int, body string) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		for i := 0; ; i++ {
			c := byte(' ')
			if i < len(body) {
				c = body[i]
			}
			if _, err := w.Write([]byte{c}); err != nil {
				return
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// raw takes the connection from the server, so that it can write anything.
func raw(w http.ResponseWriter, write func(net.Conn)) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(lease))
	write(conn)
}
