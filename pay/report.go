package pay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"till/checkout"
	"till/internal/qrcode"
)

// qr is GET /p/{token}/qr.svg: the address as a code, in capitals, which take a quarter less
// room. It says nothing that the address does not.
func (v *visit) qr() error {
	if err := v.read(); err != nil {
		return err
	}
	address := strings.ToUpper(v.p.c.URL + v.base())
	svg, err := qrcode.SVG(address, address)
	if err != nil {
		return err
	}
	svg = strings.Replace(svg, "<svg ", `<svg xmlns="http://www.w3.org/2000/svg" `, 1)
	sum := sha256.Sum256([]byte(svg))
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	h := v.w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, max-age=86400")
	if v.r.Header.Get("If-None-Match") == tag {
		v.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	v.answer(http.StatusOK, "image/svg+xml", []byte(svg))
	return nil
}

// report is POST /p/{token}/report: somebody says that something is wrong with the page.
func (v *visit) report() error {
	if v.foreign() {
		return errForeign
	}
	if err := v.read(); err != nil {
		return err
	}
	counted, err := v.p.c.Checkouts.Report(v.r.Context(), v.p.c.Limits, v.ref())
	if err != nil {
		return err
	}
	if counted {
		noun := "checkout"
		if v.view.Link != nil {
			noun = "link"
		}
		v.p.c.Log.Warn("page to pay on reported", "client", v.ref().Client.String(), noun, v.ref().ID.String())
	}
	g := v.newPage("reported", v.scene(nil))
	g.Amount, g.Report, g.Return, g.ReturnText = "", "", v.said(v.base()), v.words.T("reported.return")
	if !counted {
		g.Lead = v.words.T("reported.many")
	}
	var b bytes.Buffer
	if err := templateOf(checkout.FaceOff).ExecuteTemplate(&b, "layout", g); err != nil {
		return err
	}
	v.answer(http.StatusOK, "text/html; charset=utf-8", b.Bytes())
	return nil
}
