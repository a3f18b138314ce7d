package providertest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
)

// Replay replays the conversations in a folder. Each file has the call, the bytes that are
// sent, the bytes that are answered, and the result. open returns the providers of an
// account at the address.
//
// A file has sections, each under a line "-- name --":
//
// \t-- call --       who is called: "payments submit", "payouts check" or
// \t                 "payments test"; "refunds submit" is a refund that names
// \t                 goldenOriginal; then lines "key value": token, phone,
// \t                 amount, country, description, callback, return, code, handle, mask
// \t-- request --    what we send; -- response -- what is answered; repeated
// \t-- result --     the result
//
// The text before the first section says where the answers are from. A mask is a regular
// expression for what differs each time, shown as ***. With TILL_UPDATE=1 requests and
// results are rewritten: read the difference.
func Replay(t *testing.T, folder string, open func(t *testing.T, url string, tokens provider.Tokens) (payments, payouts provider.Provider)) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no conversations in %s: %v", folder, err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			g := readGolden(t, string(text))
			g.replay(t, open)
			if got := g.String(); got != string(text) {
				if os.Getenv("TILL_UPDATE") == "1" {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				t.Errorf("%s differs; got:\n%s\nwant:\n%s", path, got, text)
			}
		})
	}
}

type section struct{ name, text string }

// golden is one conversation.
type golden struct {
	intro    string
	sections []section
	call     map[string]string
	who      string
	masks    []*regexp.Regexp
}

var sectionLine = regexp.MustCompile(`(?m)^-- ([a-z]+) --\n`)

func readGolden(t *testing.T, text string) *golden {
	t.Helper()
	g := &golden{call: map[string]string{}}
	marks := sectionLine.FindAllStringSubmatchIndex(text, -1)
	if len(marks) == 0 {
		t.Fatal("there are no sections")
	}
	g.intro = text[:marks[0][0]]
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		g.sections = append(g.sections, section{text[m[2]:m[3]], text[m[1]:end]})
	}
	if g.sections[0].name != "call" {
		t.Fatal("the first section is not the call")
	}
	for i, line := range strings.Split(strings.TrimSpace(g.sections[0].text), "\n") {
		if i == 0 {
			g.who = line
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		if key == "mask" {
			g.masks = append(g.masks, regexp.MustCompile(value))
		}
		g.call[key] = value
	}
	return g
}

func (g *golden) String() string {
	var b strings.Builder
	b.WriteString(g.intro)
	for _, s := range g.sections {
		fmt.Fprintf(&b, "-- %s --\n%s", s.name, s.text)
	}
	return b.String()
}

// replay makes the call, and puts what was sent and the result into the sections.
func (g *golden) replay(t *testing.T, open func(t *testing.T, url string, tokens provider.Tokens) (payments, payouts provider.Provider)) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan string, 1)
	go func() { served <- g.serve(listener) }()
	url := "http://" + listener.Addr().String()
	tokens := NewTokens(time.Now)
	if text := g.call["token"]; text != "" {
		tokens.fixed = text
	}
	payments, payouts := open(t, url, tokens)
	p := payments
	kind, operation, _ := strings.Cut(g.who, " ")
	if kind != "payments" {
		p = payouts
	}
	result := g.make(t, p, operation, kind == "refunds")
	listener.Close()
	if fault := <-served; fault != "" {
		t.Error(fault)
	}
	last := &g.sections[len(g.sections)-1]
	if last.name != "result" {
		t.Fatal("the last section is not the result")
	}
	last.text = result
}

// The ids of every conversation.
const (
	goldenReference = "9d0b1f4e-6c1a-4f5b-8c3d-2e7a61f0c4b9"
	goldenOriginal  = "3f1c9a52-7b0e-4d68-a1f4-c05e8d2b9376" // of the payment that is given back
	goldenID        = "019a7c3e-52d4-7a10-9b5e-0f1e2d3c4b5a"
)

func (g *golden) make(t *testing.T, p provider.Provider, operation string, refund bool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lease)
	defer cancel()
	reference, _ := till.ParseID(goldenReference)
	id, _ := till.ParseID(goldenID)
	value, currency, _ := strings.Cut(g.call["amount"], " ")
	minor, _ := till.ParseMinor(value)
	amount := till.Money{Minor: minor, Currency: currency}
	var original *provider.Original
	if refund {
		paid, _ := till.ParseID(goldenOriginal)
		original = &provider.Original{Reference: paid, Method: g.call["method"], Country: g.call["country"], Phone: g.call["phone"], Amount: amount}
	}
	var (
		result provider.Result
		err    error
	)
	switch operation {
	case "submit":
		result, err = p.Submit(ctx, provider.Request{ID: id, Reference: reference, Country: g.call["country"], Method: g.call["method"],
			Phone: g.call["phone"], Amount: amount, Description: g.call["description"], CallbackURL: g.call["callback"], Refund: original,
			ReturnURL: g.call["return"], Code: provider.OneTimeCode(g.call["code"])})
	case "check":
		result, err = p.Check(ctx, provider.Query{ID: id, Reference: reference, Country: g.call["country"], Method: g.call["method"],
			Phone: g.call["phone"], Amount: amount, Handle: g.call["handle"], CallbackURL: g.call["callback"], Refund: original})
	case "test":
		err = p.(provider.Tester).Test(ctx)
		if err == nil {
			return "good\n"
		}
		return "bad: " + err.Error() + "\n"
	default:
		t.Fatalf("no such call: %s", operation)
	}
	return resultText(result, err)
}

// resultText formats a result for a file.
func resultText(r provider.Result, err error) string {
	var b strings.Builder
	refusal, refused := errors.AsType[*provider.Refusal](err)
	switch {
	case refused && errors.Is(err, provider.ErrCredentials):
		return "error: credentials, nothing taken\n"
	case refused && refusal.RetryAfter > 0:
		return fmt.Sprintf("error: nothing taken, try again after %s\n", refusal.RetryAfter)
	case refused:
		return "error: nothing taken\n"
	case errors.Is(err, provider.ErrCredentials):
		return "error: credentials\n"
	case errors.Is(err, provider.ErrNotSent):
		return "error: nothing sent\n"
	case err != nil:
		return "error: unknown\n"
	}
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	line("outcome", string(r.Outcome))
	line("our fault", r.OurFault)
	line("receipt", r.Receipt)
	line("handle", r.Handle)
	line("next", r.NextURL)
	if !r.Amount.IsZero() {
		line("amount", r.Amount.Value()+" "+r.Amount.Currency)
	}
	line("reference", r.Reference)
	line("reason", string(r.Reason))
	line("original", string(r.Original))
	line("code", r.Code)
	line("message", r.Message)
	if r.Retryable {
		line("retryable", "yes")
	}
	return b.String()
}

// serve accepts a connection for each request of the file and answers with the bytes that
// follow it. It returns what went wrong.
func (g *golden) serve(listener net.Listener) string {
	for i := 0; i < len(g.sections); i++ {
		if g.sections[i].name != "request" {
			continue
		}
		conn, err := listener.Accept()
		if err != nil {
			return "a request of the file was never made"
		}
		request, err := g.readRequest(conn)
		if err != nil || i+1 >= len(g.sections) || g.sections[i+1].name != "response" {
			conn.Close()
			return fmt.Sprintf("a request cannot be answered: %v", err)
		}
		g.sections[i].text = request
		io.WriteString(conn, rawResponse(g.sections[i+1].text))
		conn.Close()
	}
	return ""
}

// readRequest formats a request: the headers that we set, sorted, and the body.
func (g *golden) readRequest(conn net.Conn) (string, error) {
	conn.SetDeadline(time.Now().Add(lease))
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	var lines []string
	for name, values := range r.Header {
		if name == "Content-Length" || name == "Accept-Encoding" {
			continue
		}
		for _, v := range values {
			lines = append(lines, name+": "+v)
		}
	}
	slices.Sort(lines)
	text := r.Method + " " + r.RequestURI + "\n" + strings.Join(lines, "\n") + "\n\n"
	if len(body) > 0 {
		text += string(body) + "\n"
	}
	for _, m := range g.masks {
		text = m.ReplaceAllString(text, "***")
	}
	return text, nil
}

// rawResponse turns a response of a file into bytes: the body without the last line's end,
// and its length, which the file omits.
func rawResponse(text string) string {
	head, body, _ := strings.Cut(text, "\n\n")
	body = strings.TrimSuffix(body, "\n")
	var b bytes.Buffer
	for line := range strings.SplitSeq(strings.TrimSuffix(head, "\n"), "\n") {
		b.WriteString(line + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	return b.String()
}
