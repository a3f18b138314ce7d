package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// judge is a second opinion by encoding/json on the rules it can see.
func judge(data []byte) (ok bool, depth int) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	open := 0
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, depth
		}
		switch tok := tok.(type) {
		case json.Delim:
			if tok == '{' || tok == '[' {
				open++
				depth = max(depth, open)
			} else {
				open--
			}
		case string:
			if strings.Contains(tok, "\x00") {
				return false, depth
			}
		}
	}
	return json.Valid(data) && utf8.Valid(data) && bytes.TrimLeft(data, " \t\r\n")[0] == '{', depth
}

func FuzzDecode(f *testing.F) {
	for _, c := range refused {
		if len(c.in) < 1000 {
			f.Add([]byte(c.in))
		}
	}
	for _, c := range accepted {
		f.Add([]byte(c.in))
	}
	f.Add(payment)
	f.Fuzz(func(t *testing.T, data []byte) {
		var typed body
		var members map[string]jsontext.Value
		anyErr, typedErr := Decode(data, &members), Decode(data, &typed)
		if typedErr == nil && anyErr != nil {
			t.Fatalf("a struct takes what a map refuses: %v", anyErr)
		}
		for _, err := range []error{anyErr, typedErr} {
			var e *Error
			if err == nil {
				continue
			}
			if !errors.As(err, &e) || e.Detail == "" || len(e.Pointer) > maxPointer || !utf8.ValidString(e.Pointer) {
				t.Fatalf("ill-formed error %#v", err)
			}
		}
		ok, depth := judge(data)
		if anyErr != nil {
			var e *Error
			if errors.As(anyErr, &e) && e.Detail == detailDepth && ok && depth <= maxDepth {
				t.Fatalf("refused as too deep at depth %d", depth)
			}
			return
		}
		if !ok || depth > maxDepth {
			t.Fatalf("accepted, but encoding/json finds ok=%t depth=%d", ok, depth)
		}
		if got := Depth(data); got != depth {
			t.Fatalf("Depth is %d, want %d", got, depth)
		}
		if got := Members(data); got != len(members) {
			t.Fatalf("Members is %d, want %d", got, len(members))
		}
	})
}
