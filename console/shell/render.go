package shell

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"sync"

	"till/console/assets"
	"till/console/page"
)

// Page answers with a page, or with one region of it if the script asks for
// that. data embeds a Frame.
func (v *Visit) Page(name string, data any) error {
	t, err := page.Template(name)
	if err != nil {
		return err
	}
	block := "layout"
	if region := v.R.Header.Get("Till-Region"); region != "" {
		if block = "region-" + region; t.Lookup(block) == nil {
			return ErrNoPage
		}
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, block, data); err != nil {
		return err
	}
	if block != "layout" && v.unchanged(b.Bytes()) {
		return nil
	}
	v.Answer(cmp.Or(v.status, http.StatusOK), "text/html; charset=utf-8", b.Bytes())
	return nil
}

// Render answers with a page of a status. It is for errors, so its own end
// here.
func (v *Visit) Render(status int, name string, data any) {
	t, err := page.Template(name)
	var b bytes.Buffer
	if err == nil {
		err = t.ExecuteTemplate(&b, "layout", data)
	}
	if err != nil {
		v.Console.Log.Error("error page not served", "request_id", v.ID, "error", err)
		v.Written = true
		http.Error(v.W, http.StatusText(status)+" "+v.ID, status)
		return
	}
	v.Answer(status, "text/html; charset=utf-8", b.Bytes())
}

// unchanged says to a region's fetch that it has the region already.
func (v *Visit) unchanged(b []byte) bool {
	digest := sha256.Sum256(b)
	tag := `W/"` + base64.RawURLEncoding.EncodeToString(digest[:12]) + `"`
	v.W.Header().Set("ETag", tag)
	if v.R.Header.Get("If-None-Match") != tag {
		return false
	}
	v.Written = true
	v.W.WriteHeader(http.StatusNotModified)
	return true
}

// minZipped is the smallest page that is worth compressing.
const minZipped = 1 << 10

var zippers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// Answer sends a whole answer.
func (v *Visit) Answer(status int, kind string, b []byte) {
	v.wait()
	h := v.W.Header()
	h.Set("Content-Type", kind)
	h.Set("Vary", "Accept-Encoding, Cookie, Till-Region")
	v.Written = true
	if v.Plain || len(b) < minZipped || !assets.AcceptsGzip(v.R) {
		h.Set("Content-Length", strconv.Itoa(len(b)))
		v.W.WriteHeader(status)
		v.W.Write(b) // who does not read the answer has gone
		return
	}
	h.Set("Content-Encoding", "gzip")
	v.W.WriteHeader(status)
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(v.W)
	z.Write(b)
	z.Close()
}
