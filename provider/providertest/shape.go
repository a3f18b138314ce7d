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

// Exchange is a recorded request and its answer, to hold a simulator against.
type Exchange struct {
	Method, Path string
	Header       http.Header
	Body         string
	Status       int
	Answer       []byte
}

// Exchanges reads what was said in a file of Replay, in order.
func Exchanges(t testing.TB, file string) []Exchange {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []Exchange
	marks := sectionLine.FindAllStringSubmatchIndex(string(text), -1)
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		head, body, _ := strings.Cut(string(text[m[1]:end]), "\n\n")
		body = strings.TrimSuffix(body, "\n")
		switch string(text[m[2]:m[3]]) {
		case "request":
			x := Exchange{Header: http.Header{}, Body: body}
			for n, line := range strings.Split(head, "\n") {
				if n == 0 {
					x.Method, x.Path, _ = strings.Cut(line, " ")
				} else if name, value, ok := strings.Cut(line, ": "); ok {
					x.Header.Set(name, value)
				}
			}
			all = append(all, x)
		case "response":
			x := &all[len(all)-1]
			fmt.Sscanf(head, "HTTP/1.1 %d", &x.Status)
			x.Answer = []byte(body)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no requests", file)
	}
	return all
}

// Put puts the request to a simulator. The body may be another one.
func (x Exchange) Put(operator http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(x.Method, x.Path, strings.NewReader(body))
	r.Header = x.Header.Clone()
	rec := httptest.NewRecorder()
	operator.ServeHTTP(rec, r)
	return rec
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
