package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"till"
	"till/books"
	"till/ledger"
)

// export is a format in which lists are exported.
type export struct {
	format      books.Format
	contentType []string
}

// exports are the media types of exports.
var exports = map[string]*export{
	"text/csv":             {books.CSV, []string{"text/csv; charset=utf-8; header=present"}},
	"application/jsonl":    {books.JSONL, []string{"application/jsonl"}},
	"application/x-ndjson": {books.JSONL, []string{"application/x-ndjson"}}, // its older name
}

// maxAccept is how many bytes of an Accept header are read.
const maxAccept = 1024

// exportOf returns the export that an Accept header prefers to JSON, nil if there is none.
// Of equals the first counts; unknown types are ignored.
func exportOf(accept []string) *export {
	var best *export
	quality := 0.0
	text := strings.Join(accept, ",")
	for part := range strings.SplitSeq(text[:min(len(text), maxAccept)], ",") {
		media, params, _ := strings.Cut(part, ";")
		media = strings.ToLower(strings.TrimSpace(media))
		e, known := exports[media]
		if !known && media != "application/json" && media != "application/*" && media != "*/*" {
			continue
		}
		if q := qualityOf(params); q > quality {
			best, quality = e, q
		}
	}
	return best
}

// qualityOf returns the q of a media range, 1 if it has none.
func qualityOf(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			if err != nil || q < 0 || q > 1 {
				return 0
			}
			return q
		}
	}
	return 1
}

// exportPage answers with one page.
func (c *exchange) exportPage(e *export, ts []*ledger.Transaction) error {
	b := append(c.buffer(), e.format.Header()...)
	for _, t := range ts {
		b = e.format.Append(b, t)
	}
	c.out.b = b
	c.nameFile(e)
	return c.write(http.StatusOK, e.contentType, b)
}

// nameFile gives the export a file name for browsers.
func (c *exchange) nameFile(e *export) {
	c.Header()["Content-Disposition"] = []string{`attachment; filename="statement.` + string(e.format) + `"`}
}

// exportAll streams a whole statement. It holds nothing of the database while the client
// reads. A client that hangs up, or reads nothing for exportWriteTimeout, ends it. After
// the first byte, a failure breaks the connection, so that nobody takes a part for the
// whole.
func (c *exchange) exportAll(e *export, st books.Statement) error {
	if c.r.Method == http.MethodHead {
		c.nameFile(e)
		c.Header()["Content-Type"] = e.contentType
		return c.empty(http.StatusOK)
	}
	leave, err := c.enter(c.s.exports)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	go func() { // a stop must not wait for a long statement
		select {
		case <-c.s.exports.stopping:
			cancel(errStopping)
		case <-ctx.Done():
		}
	}()
	w := &exportWriter{c: c, e: e, control: http.NewResponseController(c.ResponseWriter)}
	lines, err := books.Export(ctx, c.s.Store, st, w)
	switch {
	case err == nil && c.status == 0: // an empty statement in JSON Lines
		w.begin()
		return nil
	case err == nil:
		return nil
	case c.status == 0:
		if errors.Is(context.Cause(ctx), errStopping) {
			return &till.Error{Code: till.CodeServiceUnavailable}
		}
		return err
	}
	c.s.Log.Warn("statement export aborted", "request_id", c.id, "lines", lines, "error", err)
	panic(http.ErrAbortHandler)
}

var errStopping = errors.New("the service stops")

// exportWriteTimeout is how long a client may take to read one slice.
const exportWriteTimeout = 60 * time.Second

// exportWriter writes each slice at once.
type exportWriter struct {
	c       *exchange
	e       *export
	control *http.ResponseController
}

func (w *exportWriter) begin() {
	w.c.nameFile(w.e)
	w.c.Header()["Content-Type"] = w.e.contentType
	w.c.status = http.StatusOK
	w.c.WriteHeader(http.StatusOK)
}

// Write implements io.Writer.
func (w *exportWriter) Write(b []byte) (int, error) {
	if w.c.status == 0 {
		w.begin()
	} else if err := w.c.recheck(); err != nil {
		return 0, err // the key was revoked meanwhile
	}
	// Not every writer has deadlines; our server's have.
	w.control.SetWriteDeadline(time.Now().Add(exportWriteTimeout))
	n, err := w.c.Write(b)
	if err == nil {
		err = w.control.Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		err = nil
	}
	return n, err
}
