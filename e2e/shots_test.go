package e2e

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strings"
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
	keep := func(name string, picture []byte) {
		t.Helper()
		err := os.MkdirAll(folder, 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	shoot := func(p *page, name string) { t.Helper(); keep(name, p.shot()) }
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

	desk(p)
	p.link(s, "School fees", "15 000")
	address := p.value("#address", "value")
	customer := newPage(t, "pictures of a customer", s.origin)
	customer.withoutScript(true)
	customer.dress("light", narrow)
	customer.open(address[strings.Index(address, "/p/"):])
	customer.fill("#reference", "2026-117")
	customer.fill("#phone", "06 123 45 01")
	phones := [][]byte{customer.shot()}
	time.Sleep(1100 * time.Millisecond) // a form that is sent within a second was not read
	customer.follow(`main form button`)
	customer.until(`document.querySelector("input[name=sure]")`)
	phones = append(phones, customer.shot())
	customer.follow(`main form button:not([name])`)
	customer.until(`document.title.startsWith("✓ Paid")`)
	keep("pay", beside(t, append(phones, customer.shot())))
	p.until(`document.querySelector("#opened .chip.paid")`)
	shoot(p, "link")
}

// shot returns a picture of what the window shows.
func (p *page) shot() []byte {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	return picture
}

// beside returns pictures in one row, with a gap of light grey between them.
func beside(t *testing.T, pictures [][]byte) []byte {
	t.Helper()
	const gap = 16
	var all []image.Image
	width, height := 0, 0
	for _, b := range pictures {
		m, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
		width, height = width+m.Bounds().Dx()+gap, max(height, m.Bounds().Dy())
	}
	row := image.NewRGBA(image.Rect(0, 0, width-gap, height))
	draw.Draw(row, row.Bounds(), image.NewUniform(color.Gray{Y: 0xdd}), image.Point{}, draw.Src)
	x := 0
	for _, m := range all {
		draw.Draw(row, image.Rect(x, 0, x+m.Bounds().Dx(), m.Bounds().Dy()), m, m.Bounds().Min, draw.Src)
		x += m.Bounds().Dx() + gap
	}
	var b bytes.Buffer
	if err := png.Encode(&b, row); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
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
