package loadgen

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReader(t *testing.T) {
	const accepted = "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{\"a\"}"
	tests := []struct {
		name   string
		answer string
		status int
		body   string
		err    error // nil with status 0 means: any error
	}{
		{"an answer", accepted, 202, `{"a"}`, nil},
		{"without a body", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", 204, "", nil},
		{"in another spelling", "HTTP/1.1 200 OK\r\ncontent-length:2\r\nX: y\r\n\r\nok", 200, "ok", nil},
		{"with a name that ends alike", "HTTP/1.1 200 OK\r\nX-Content-Length: 9\r\nContent-Length: 2\r\n\r\nok", 200, "ok", nil},
		{"cut off in the head", "HTTP/1.1 202 Acc", 0, "", io.ErrUnexpectedEOF},
		{"cut off in the body", accepted[:len(accepted)-1], 0, "", io.ErrUnexpectedEOF},
		{"nothing at all", "", 0, "", io.ErrUnexpectedEOF},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, "", errNoLength},
		{"a length that is no number", "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n", 0, "", errNoLength},
		{"an empty length", "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", 0, "", errNoLength},
		{"too long to read", "HTTP/1.1 200 OK\r\nContent-Length: 999999999999999999999\r\n\r\n", 0, "", errTooLong},
		{"an endless head", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", maxResponse), 0, "", errTooLong},
		{"not HTTP", "SSH-2.0-x\r\n\r\n", 0, "", errNoStatus},
		{"bytes after the end", accepted + "HTTP", 0, "", nil},
	}
	sources := map[string]func(io.Reader) io.Reader{
		"in one piece":          func(r io.Reader) io.Reader { return r },
		"byte by byte":          iotest.OneByteReader,
		"with its error at end": iotest.DataErrReader,
	}
	for _, tt := range tests {
		for pieces, source := range sources {
			if tt.name == "bytes after the end" && pieces == "byte by byte" {
				continue // they would be the next answer
			}
			t.Run(tt.name+" "+pieces, func(t *testing.T) {
				r := &reader{src: source(strings.NewReader(tt.answer))}
				status, body, err := r.next()
				if (err == nil) != (tt.status != 0) || tt.err != nil && !errors.Is(err, tt.err) {
					t.Fatalf("error %v, want %v", err, tt.err)
				}
				if status != tt.status || string(body) != tt.body {
					t.Fatalf("got %d %q, want %d %q", status, body, tt.status, tt.body)
				}
			})
		}
	}
}

func TestReaderReadsAnswerAfterAnswer(t *testing.T) {
	r := &reader{src: iotest.OneByteReader(strings.NewReader(
		"HTTP/1.1 202 Accepted\r\nContent-Length: 3\r\n\r\none" + "HTTP/1.1 503 No\r\nContent-Length: 3\r\n\r\ntwo"))}
	for _, want := range []struct {
		status int
		body   string
	}{{202, "one"}, {503, "two"}} {
		status, body, err := r.next()
		if err != nil || status != want.status || string(body) != want.body {
			t.Fatalf("got %d %q %v, want %d %q", status, body, err, want.status, want.body)
		}
	}
}
