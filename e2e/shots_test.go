package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The pictures of the guides: 'make screenshots' takes them anew. Without its
// variable there is nothing to do.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("TILL_SCREENSHOTS")
	if folder == "" {
		return
	}
	s := startDev(t)
	s.pictured()
	p := newPage(t, "pictures", s.origin)
	p.enterDemo(s, "Awa")
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: wide, Height: 720, DeviceScaleFactor: 1})
	shoot := func(name string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		defer cancel()
		png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.MkdirAll(folder, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.open("/console/c/" + s.client + "/payments")
	shoot("payments")
	waiting := s.pay("242061230003", "5000", "ORDER-1042", object{"description": "Two loaves, coffee"})
	s.until(waiting, "processing")
	p.open("/console/c/" + s.client + "/payments/" + waiting)
	shoot("payment")
	p.open(s.sandboxPath())
	p.order()
	p.until(`document.querySelector("#pin") && document.querySelector("#order .chip.processing")`)
	shoot("handset")
	p.dress("light", narrow)
	p.open("/console/c/" + s.client + "/collect")
	p.fill("#desk-amount", "5 000")
	p.fill("#desk-phone", "06 123 45 67")
	shoot("collect")
}

// pictured gives the demo client a morning's business.
func (s *till) pictured() {
	s.t.Helper()
	ids := []string{}
	for i, end := range []string{"4501", "0002", "4502", "4503", "0004", "4504", "4505"} {
		phone, method := "24206123"+end, "mtn_momo"
		if i%3 == 2 {
			phone, method = "24205123"+end, "airtel_money"
		}
		ids = append(ids, s.pay(phone, []string{"5000", "7500", "2500", "12000"}[i%4], fmt.Sprintf("ORDER-%d", 1030+i), object{"method": method}))
	}
	s.until(ids[1], "failed")
	for _, i := range []int{0, 2, 3, 5, 6} {
		s.until(ids[i], "success")
	}
}
