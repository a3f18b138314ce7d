package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

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
	shoot := func(p *page, name string) {
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
	desk := func(p *page) {
		call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: wide, Height: 720, DeviceScaleFactor: 1})
	}
	busy := weekOfBusiness(t)
	desk(busy)
	shoot(busy, "home")
	desk(p)
	p.open("/console/c/" + s.client + "/payments")
	shoot(p, "payments")
	waiting := s.pay("242061230003", "5000", "ORDER-1042", object{"description": "Two loaves, coffee"})
	s.until(waiting, "processing")
	p.open("/console/c/" + s.client + "/payments/" + waiting)
	shoot(p, "payment")
	p.open(s.sandboxPath())
	p.order()
	p.until(`document.querySelector("#pin") && document.querySelector("#order .chip.processing")`)
	shoot(p, "handset")
	p.dress("light", narrow)
	p.open("/console/c/" + s.client + "/collect")
	p.fill("#desk-amount", "5 000")
	p.fill("#desk-phone", "06 123 45 67")
	shoot(p, "collect")
}

// weekOfBusiness returns the home of a merchant with a week behind it.
func weekOfBusiness(t *testing.T) *page {
	t.Helper()
	data := t.TempDir()
	s := startServe(t, data) // it makes the database
	s.stop()
	m := &merchant{name: "Boulangerie Mapassa", zone: "Africa/Brazzaville"}
	day := time.Now().UTC().Add(-7 * 24 * time.Hour)
	open(t, data, day, func(w *past) { w.create(m) })
	for i, amounts := range [][]string{{"42000", "21500"}, {"55000", "18000"}, {"38500", "30000"}, {"61000", "26500"}, {"72000", "33000"}, {"47500", "41000"}, {"28000", "12500"}} {
		open(t, data, day.Add(time.Duration(i+1)*24*time.Hour-10*time.Minute), func(w *past) {
			w.sell(m, "mtn_momo", "242061234567", amounts[0], fmt.Sprintf("ORDER-%d", 1000+2*i))
			w.sell(m, "airtel_money", "242051234567", amounts[1], fmt.Sprintf("ORDER-%d", 1001+2*i))
		})
	}
	s = startServe(t, data)
	s.client = m.client.ID.String()
	p := s.join("pictures", "viewer", "Inès")
	p.open("/console/c/" + s.client + "/home?range=7d")
	p.until(`document.querySelector("#home .plot")`)
	return p
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
