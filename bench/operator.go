package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"till"
	"till/provider"
)

// The operator of the benchmark is a process of its own, reached by HTTP. It
// takes every request at once, and its customers approve at once: what is
// measured is Till's work, not a wait.

// maxHeld is how many requests the operator remembers.
const maxHeld = 10_000_000

// operatorRequest is what Till sends it.
type operatorRequest struct {
	Reference string `json:"reference"`
	Phone     string `json:"phone"`
	Amount    string `json:"amount"`
	Currency  string `json:"currency"`
}

// operatorAnswer is its answer.
type operatorAnswer struct {
	Status  string `json:"status"`
	Receipt string `json:"receipt,omitempty"`
}

// serveOperator is the hidden subcommand.
func serveOperator(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("an address is missing")
	}
	debug.SetGCPercent(servedGCPercent)
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	o := &operator{held: map[till.ID]bool{}}
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		go o.serve(conn)
	}
}

// operator is the other side. A real one has machines of its own, and this one
// shares Till's: so it speaks just enough HTTP to be understood, because every
// microsecond that it takes is taken from what is measured.
type operator struct {
	mu   sync.Mutex
	held map[till.ID]bool
}

// maxOperatorBody is how long a request's body may be.
const maxOperatorBody = 4096

// serve answers the requests that come over a connection, one after the other.
func (o *operator) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 2*maxOperatorBody)
	var body [maxOperatorBody]byte
	var out []byte
	for {
		method, path, length, err := readHead(r)
		if err != nil || length > len(body) {
			return
		}
		if _, err := io.ReadFull(r, body[:length]); err != nil {
			return
		}
		status, text := o.answer(method, path, body[:length])
		out = fmt.Appendf(out[:0], "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			status, http.StatusText(status), len(text), text)
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// readHead reads the lines of a request before its body.
func readHead(r *bufio.Reader) (method, path string, length int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return "", "", 0, err
	}
	words := strings.Fields(string(line))
	if len(words) != 3 {
		return "", "", 0, errors.New("not a request")
	}
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return "", "", 0, err
		}
		name, value, more := bytes.Cut(line, []byte(":"))
		if !more {
			return words[0], words[1], length, nil
		}
		if bytes.EqualFold(name, []byte("content-length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || length < 0 {
				return "", "", 0, errors.New("not a length")
			}
		}
	}
}

// answer decides the answer to a request.
func (o *operator) answer(method, path string, body []byte) (status int, text []byte) {
	reference, one := strings.CutPrefix(path, "/requests/")
	switch {
	case method == http.MethodGet && strings.HasPrefix(path, "/v1/payments"):
		return http.StatusOK, []byte(emptyPage)
	case method == http.MethodGet && one:
		id, err := till.ParseID(reference)
		o.mu.Lock()
		known := err == nil && o.held[id]
		o.mu.Unlock()
		if !known {
			return encodeAnswer(http.StatusNotFound, operatorAnswer{Status: "NOT_FOUND"})
		}
		return encodeAnswer(http.StatusOK, operatorAnswer{Status: "APPROVED", Receipt: receiptOf(id)})
	case method == http.MethodPost && path == "/requests":
		var q operatorRequest
		err := json.Unmarshal(body, &q)
		id, bad := till.ParseID(q.Reference)
		if err != nil || bad != nil {
			return encodeAnswer(http.StatusBadRequest, operatorAnswer{Status: "NOT_A_REQUEST"})
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.held) >= maxHeld {
			return encodeAnswer(http.StatusServiceUnavailable, operatorAnswer{Status: "TOO_MANY"})
		}
		o.held[id] = true
		return encodeAnswer(http.StatusAccepted, operatorAnswer{Status: "ACCEPTED"})
	}
	return encodeAnswer(http.StatusNotFound, operatorAnswer{Status: "NOT_FOUND"})
}

func encodeAnswer(status int, a operatorAnswer) (int, []byte) {
	b, _ := json.Marshal(a) // strings always marshal
	return status, b
}

func receiptOf(reference till.ID) string { return fmt.Sprintf("BEN%X", reference[:]) }

// successOf is the operator's answer that a payment succeeded.
func successOf(reference till.ID) provider.Result {
	return provider.Result{Outcome: provider.Success, Code: "APPROVED", Reference: reference.String(), Receipt: receiptOf(reference)}
}

// operatorClient is the adapter to this operator, as Till would have one.
type operatorClient struct {
	base   string
	client *http.Client
}

var _ provider.Provider = (*operatorClient)(nil)

func newOperatorClient(base string) *operatorClient {
	return &operatorClient{base: base, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, IdleConnTimeout: time.Minute}}}
}

// Submit implements provider.Provider.
func (o *operatorClient) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	body, err := json.Marshal(operatorRequest{r.Reference.String(), r.Phone, r.Amount.Value(), r.Amount.Currency})
	if err != nil {
		return provider.Result{}, err
	}
	status, a, err := o.call(ctx, http.MethodPost, "/requests", body)
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("the operator answered %d", status)
	}
	if err != nil {
		return provider.Result{}, err
	}
	return provider.Result{Outcome: provider.Accepted, Code: a.Status, Reference: r.Reference.String()}, nil
}

// Check implements provider.Provider.
func (o *operatorClient) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	status, a, err := o.call(ctx, http.MethodGet, "/requests/"+q.Reference.String(), nil)
	switch {
	case err != nil:
		return provider.Result{}, err
	case status == http.StatusNotFound:
		return provider.Result{Outcome: provider.NotFound, Code: a.Status}, nil
	case status != http.StatusOK || a.Status != "APPROVED":
		return provider.Result{}, fmt.Errorf("the operator answered %d %s", status, a.Status)
	}
	return successOf(q.Reference), nil
}

func (o *operatorClient) call(ctx context.Context, method, path string, body []byte) (status int, a operatorAnswer, err error) {
	req, err := http.NewRequestWithContext(ctx, method, o.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, a, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := o.client.Do(req)
	if err != nil {
		return 0, a, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	return resp.StatusCode, a, err
}

// Traits implements provider.Provider.
func (*operatorClient) Traits() provider.Traits {
	return provider.Traits{
		ClientReference: true, ApprovalWindow: 2 * time.Minute, SubmitTimeout: 5 * time.Second, CheckTimeout: 5 * time.Second,
		NotFoundDelay: 500 * time.Millisecond, Poll: 100 * time.Millisecond, PollMax: time.Hour, Grace: time.Minute,
	}
}

// Fingerprint implements provider.Provider.
func (*operatorClient) Fingerprint() string { return "bench" }
