package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

// Exchange is the content of a file of Replay.
type Exchange struct {
	Title               string // the text before the first section
	Requests, Responses []string
	Result              string
}

// ReadExchange reads a file of Replay.
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

// Status returns the status of an answer. A body has no line feed at its end.
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

// Answer writes a recorded answer.
func (x *Exchange) Answer(w http.ResponseWriter, n int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(x.Status(n))
	w.Write(x.Body(n))
}

// Request returns a recorded request, for a simulator.
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

// Shape lists the paths of a JSON text with their types, sorted: two answers of one shape
// differ only in values.
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
