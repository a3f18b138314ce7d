package console

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

// page answers with a page, or with one region of it if the script asks for
// that. data embeds a Frame.
func (v *visit) page(name string, data any) error {
	t, err := page.Template(name)
	if err != nil {
		return err
	}
	block := "layout"
	if region := v.r.Header.Get("Till-Region"); region != "" {
		if block = "region-" + region; t.Lookup(block) == nil {
			return errNoPage
		}
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, block, data); err != nil {
		return err
	}
	if block != "layout" && v.unchanged(b.Bytes()) {
		return nil
	}
	v.write(cmp.Or(v.status, http.StatusOK), "text/html; charset=utf-8", b.Bytes())
	return nil
}

// render answers with a page of a status. It is for errors, so its own end
// here.
func (v *visit) render(status int, name string, data any) {
	t, err := page.Template(name)
	var b bytes.Buffer
	if err == nil {
		err = t.ExecuteTemplate(&b, "layout", data)
	}
	if err != nil {
		v.k.Log.Error("error page not served", "request_id", v.id, "error", err)
		v.written = true
		http.Error(v.w, http.StatusText(status)+" "+v.id, status)
		return
	}
	v.write(status, "text/html; charset=utf-8", b.Bytes())
}

// unchanged tells a region's fetch that it has the region already.
func (v *visit) unchanged(b []byte) bool {
	digest := sha256.Sum256(b)
	tag := `W/"` + base64.RawURLEncoding.EncodeToString(digest[:12]) + `"`
	v.w.Header().Set("ETag", tag)
	if v.r.Header.Get("If-None-Match") != tag {
		return false
	}
	v.written = true
	v.w.WriteHeader(http.StatusNotModified)
	return true
}

// minZipped is the smallest page that is worth compressing.
const minZipped = 1 << 10

var zippers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// write sends a whole answer.
func (v *visit) write(status int, kind string, b []byte) {
	v.wait()
	h := v.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Vary", "Accept-Encoding, Cookie, Till-Region")
	v.written = true
	if v.plain || len(b) < minZipped || !assets.AcceptsGzip(v.r) {
		h.Set("Content-Length", strconv.Itoa(len(b)))
		v.w.WriteHeader(status)
		v.w.Write(b) // who does not read the answer has gone
		return
	}
	h.Set("Content-Encoding", "gzip")
	v.w.WriteHeader(status)
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(v.w)
	z.Write(b)
	z.Close()
}
