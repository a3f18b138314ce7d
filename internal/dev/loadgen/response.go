package loadgen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxResponse is the longest answer that is read, head and body together.
const maxResponse = 16 << 10

var (
	errTooLong  = fmt.Errorf("the answer is longer than %d bytes", maxResponse)
	errNoLength = errors.New("the answer has no Content-Length")
	errNoStatus = errors.New("the answer is not HTTP/1.1")

	headEnd    = []byte("\r\n\r\n")
	lineEnd    = []byte("\r\n")
	lengthName = []byte("Content-Length:")
)

// reader reads consecutive answers from a connection. It parses only what a load generator
// needs: the status, and where the next answer begins.
type reader struct {
	src  io.Reader
	buf  [maxResponse]byte
	used int // bytes of buf that are filled
}

// next reads one whole answer and returns its status and its body, which is valid until the
// next call. Nothing may follow an answer before the next request, so further bytes are an
// error.
func (r *reader) next() (status int, body []byte, err error) {
	r.used = 0
	end, length := 0, 0 // of the head; of the body
	for {
		n, readErr := r.src.Read(r.buf[r.used:])
		r.used += n
		if end == 0 {
			if end, status, length, err = parseHead(r.buf[:r.used]); err != nil {
				return 0, nil, err
			}
		}
		switch {
		case end > 0 && r.used == end+length:
			return status, r.buf[end:r.used], nil
		case end > 0 && r.used > end+length:
			return 0, nil, errors.New("bytes after the end of the answer")
		case readErr == io.EOF:
			return 0, nil, io.ErrUnexpectedEOF
		case readErr != nil:
			return 0, nil, readErr
		case r.used == len(r.buf):
			return 0, nil, errTooLong
		}
	}
}

// parseHead parses the head of an answer: its end, or 0 while it is incomplete, its status,
// and the length of the body.
func parseHead(b []byte) (end, status, length int, err error) {
	i := bytes.Index(b, headEnd)
	if i < 0 {
		return 0, 0, 0, nil
	}
	if status, err = parseStatus(b); err != nil {
		return 0, 0, 0, err
	}
	if length, err = parseLength(b[:i+len(lineEnd)]); err != nil {
		return 0, 0, 0, err
	}
	end = i + len(headEnd)
	if end+length > maxResponse {
		return 0, 0, 0, errTooLong
	}
	return end, status, length, nil
}

// parseStatus parses the status in "HTTP/1.1 202 Accepted".
func parseStatus(b []byte) (int, error) {
	const prefix = "HTTP/1.1 "
	if len(b) < len(prefix)+3 || string(b[:len(prefix)]) != prefix {
		return 0, errNoStatus
	}
	n, err := strconv.Atoi(string(b[len(prefix) : len(prefix)+3]))
	if err != nil || n < 100 {
		return 0, errNoStatus
	}
	return n, nil
}

// parseLength finds Content-Length in a head whose lines all end in CRLF. It tries the
// usual spelling first: comparing every line without regard to case would cost more than
// the rest of the parsing.
func parseLength(head []byte) (int, error) {
	i := bytes.Index(head, lengthName)
	if i < 2 || head[i-1] != '\n' {
		if i = indexLength(head); i < 0 {
			return 0, errNoLength
		}
	}
	value := head[i+len(lengthName):]
	value = bytes.TrimSpace(value[:bytes.Index(value, lineEnd)])
	n := 0
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, errNoLength
		}
		if n = n*10 + int(c-'0'); n > maxResponse {
			return 0, errTooLong
		}
	}
	if len(value) == 0 {
		return 0, errNoLength
	}
	return n, nil
}

// indexLength finds the line of Content-Length in any spelling, or returns -1.
func indexLength(head []byte) int {
	for at := 0; at < len(head); {
		next := bytes.Index(head[at:], lineEnd)
		if next < 0 {
			break
		}
		line := head[at : at+next]
		if len(line) >= len(lengthName) && bytes.EqualFold(line[:len(lengthName)], lengthName) {
			return at
		}
		at += next + len(lineEnd)
	}
	return -1
}
