package api

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
)

// framing parses a connection's bytes to answer one question that net/http hides: did the
// headers announce a length as well as chunks? A proxy that goes by the length, where we go
// by the chunks, would take the rest of one client's body for another client's request.
// net/http drops the length silently. Whatever the parser cannot follow counts as refused,
// because from there on the start of the next request is unknown.
type framing struct {
	part        framePart
	skip        uint64 // bytes of a body or of a chunk that are still to come
	line        []byte // the line so far, at most maxFrameLine bytes of it
	long        bool   // the line is longer
	requestLine bool   // the request's first line was read

	length             uint64
	hasLength, chunked bool
	requests           int64        // requests whose headers were read completely
	refused, served    atomic.Int64 // the first request to refuse, 0 if none; how many reached a handler
}

// framePart is the part that the next byte belongs to.
type framePart int

const (
	frameHeader framePart = iota
	frameChunk            // the line with a chunk's size
	frameData             // a body of known length
	frameBreak            // the line break after a chunk
	frameTrailer
	frameLost
)

var transferEncoding, contentLength = []byte("Transfer-Encoding"), []byte("Content-Length")

// maxFrameLine is how many bytes of a line are kept: the headers that matter are short.
const maxFrameLine = 64

// feed parses more bytes.
func (f *framing) feed(b []byte) {
	for len(b) > 0 && f.part != frameLost {
		if f.skip > 0 {
			n := min(f.skip, uint64(len(b)))
			f.skip, b = f.skip-n, b[n:]
			continue
		}
		if f.part == frameData {
			f.nextRequest()
		}
		end := bytes.IndexByte(b, '\n')
		part := b
		if end >= 0 {
			part = b[:end]
		}
		if n := min(len(part), maxFrameLine-len(f.line)); n < len(part) {
			f.long, part = true, part[:n]
		}
		f.line = append(f.line, part...)
		if end < 0 {
			return
		}
		f.endLine(bytes.TrimSuffix(f.line, []byte{'\r'}))
		f.line, f.long, b = f.line[:0], false, b[end+1:]
	}
}

// nextRequest starts the next request.
func (f *framing) nextRequest() {
	f.part, f.requestLine, f.length, f.hasLength, f.chunked = frameHeader, false, 0, false, false
}

// endLine parses one whole line.
func (f *framing) endLine(line []byte) {
	switch f.part {
	case frameHeader:
		f.header(line)
	case frameChunk:
		digits, _, _ := bytes.Cut(line, []byte{';'})
		n, err := strconv.ParseUint(string(bytes.TrimRight(digits, " \t")), 16, 63)
		switch {
		case err != nil:
			f.refuseRest()
		case n == 0:
			f.part = frameTrailer
		default:
			f.part, f.skip = frameBreak, n
		}
	case frameBreak:
		if f.part = frameChunk; len(line) > 0 {
			f.refuseRest()
		}
	case frameTrailer:
		if len(line) == 0 {
			f.nextRequest()
		}
	}
}

// header parses one line of a request's head, from the first to the empty one.
func (f *framing) header(line []byte) {
	if !f.requestLine { // empty lines before a request are skipped
		f.requestLine = len(line) > 0
		return
	}
	if len(line) == 0 {
		f.endHeaders()
		return
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	switch {
	case line[0] == ' ' || line[0] == '\t':
		f.refuseRest() // a folded line, which RFC 9112 lets us refuse
	case bytes.EqualFold(name, transferEncoding):
		f.chunked = true
	case bytes.EqualFold(name, contentLength):
		n, err := strconv.ParseUint(string(bytes.Trim(value, " \t")), 10, 63)
		if err != nil || f.long || f.hasLength && n != f.length {
			f.refuseRest()
			return
		}
		f.length, f.hasLength = n, true
	}
}

func (f *framing) endHeaders() {
	if f.chunked && f.hasLength {
		f.refuseRest()
		return
	}
	f.requests++
	if f.part, f.skip = frameData, f.length; f.chunked {
		f.part = frameChunk
	}
}

// refuseRest refuses the current request and all that follow.
func (f *framing) refuseRest() {
	f.part = frameLost
	f.refused.CompareAndSwap(0, f.requests+1)
}

type framingKey struct{}

// withFraming adds a guarded connection's framing to the context of its requests.
func withFraming(ctx context.Context, c net.Conn) context.Context {
	if g, ok := c.(*guardedConn); ok {
		return context.WithValue(ctx, framingKey{}, &g.framing)
	}
	return ctx
}

// refuseUnframed refuses requests whose end is uncertain.
func refuseUnframed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, ok := r.Context().Value(framingKey{}).(*framing); ok {
			n, first := f.served.Add(1), f.refused.Load()
			if first > 0 && n >= first {
				e := malformed("", unframed)
				s, ok := h.(*server)
				if !ok {
					writeProblem(w, "", e)
					return
				}
				c := &exchange{r: r, s: s, id: writeProblem(w, s.ErrorPages, e)}
				c.logRefusal(e, http.StatusBadRequest)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

const unframed = "Send either Content-Length or Transfer-Encoding: chunked, once, and headers on one line each."
