package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"till/provider"
)

// Golden replays recorded exchanges, one file each: what the adapter must say
// byte for byte, what the operator answers byte for byte, and what is made of
// it. A file has a section "-- request --" and one "-- response --" for each
// call, in order, and one "-- result --" at its end.
//
// act makes the call that a file is named for, at an operator of that base
// URL. TILL_GOLDEN=update writes requests and results anew; read the difference.
func Golden(t *testing.T, pattern string, act func(t *testing.T, name, baseURL string) (provider.Result, error)) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no files %s (%v)", pattern, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := ReadExchange(t, file)
			var said []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				said = append(said, spoken(r))
				if len(said) > len(x.Responses) {
					t.Errorf("call %d is not in the file", len(said))
					panic(http.ErrAbortHandler)
				}
				x.Answer(w, len(said)-1)
			}))
			defer server.Close()
			result, err := act(t, name, server.URL)
			x.hold(t, file, said, fmt.Sprintf("%+v\nerror: %v\n", result, err))
		})
	}
}

// Exchange is what a file of Golden holds.
type Exchange struct {
	Title               string // what stands before the first section
	Requests, Responses []string
	Result              string
}

// ReadExchange reads a file of Golden.
func ReadExchange(t *testing.T, file string) *Exchange {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	x := &Exchange{}
	section := &x.Title
	for line := range strings.Lines(string(text)) {
		switch line {
		case "-- request --\n":
			x.Requests = append(x.Requests, "")
			section = &x.Requests[len(x.Requests)-1]
		case "-- response --\n":
			x.Responses = append(x.Responses, "")
			section = &x.Responses[len(x.Responses)-1]
		case "-- result --\n":
			section = &x.Result
		default:
			*section += line
		}
	}
	return x
}

// Status and Body return the parts of an answer. A body has no line feed at its
// end.
func (x *Exchange) Status(n int) (status int) {
	fmt.Sscanf(x.Responses[n], "HTTP/1.1 %d", &status)
	return status
}

// Body returns the body of an answer.
func (x *Exchange) Body(n int) []byte { return []byte(body(x.Responses[n])) }

func body(section string) string {
	_, text, _ := strings.Cut(section, "\n\n")
	return strings.TrimSuffix(text, "\n")
}

// Answer gives a recorded answer.
func (x *Exchange) Answer(w http.ResponseWriter, n int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(x.Status(n))
	w.Write(x.Body(n))
}

// Request returns a recorded request, to be put to a simulator.
func (x *Exchange) Request(n int) *http.Request {
	head, text, _ := strings.Cut(x.Requests[n], "\n\n")
	lines := strings.Split(head, "\n")
	method, path, _ := strings.Cut(lines[0], " ")
	r := httptest.NewRequest(method, path, strings.NewReader(strings.TrimSuffix(text, "\n")))
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// spoken writes a request down. What the HTTP library adds is left out, and a
// signature, which is another one each time, is shown as a star.
func spoken(r *http.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.URL.RequestURI())
	var names []string
	for name := range r.Header {
		if !slices.Contains([]string{"User-Agent", "Content-Length", "Accept-Encoding", "Connection"}, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		value := r.Header.Get(name)
		if name == "Signature" {
			value = "*"
		}
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	text, _ := io.ReadAll(r.Body)
	fmt.Fprintf(&b, "\n%s", text)
	if len(text) > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

// hold compares what was said with the file, or writes the file.
func (x *Exchange) hold(t *testing.T, file string, said []string, result string) {
	t.Helper()
	if os.Getenv("TILL_GOLDEN") == "update" {
		var b strings.Builder
		b.WriteString(x.Title)
		for i, s := range said {
			b.WriteString("-- request --\n" + s + "-- response --\n" + x.Responses[i])
		}
		b.WriteString("-- result --\n" + result)
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if len(said) != len(x.Requests) {
		t.Errorf("%d calls were made, want %d", len(said), len(x.Requests))
	}
	for i := range min(len(said), len(x.Requests)) {
		if said[i] != x.Requests[i] {
			t.Errorf("call %d is\n%s\nwant\n%s", i+1, said[i], x.Requests[i])
		}
	}
	if result != x.Result {
		t.Errorf("the result is\n%s\nwant\n%s", result, x.Result)
	}
}

// Shape lists the places of a JSON text with the types of what they hold,
// sorted: two answers of one shape differ in words alone.
func Shape(text []byte) []string {
	if !json.Valid(bytes.TrimSpace(text)) {
		return []string{"not JSON"}
	}
	var out []string
	leaves(parsed(text), nil, func(path []any, v any) {
		switch v.(type) {
		case map[string]any, []any:
			return
		}
		out = append(out, fmt.Sprintf("%v %T", path, v))
	})
	slices.Sort(out)
	return out
}
