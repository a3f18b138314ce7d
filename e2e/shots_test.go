package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// The pictures of the guides: 'make screenshots' takes them anew. Without its
// variable there is nothing to do.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("TILL_SCREENSHOTS")
	if folder == "" {
		return
	}
	s := startDev(t, "--approval-window", "60s")
	s.pictured()
	p := newPage(t, "pictures", s.origin)
	p.enterDemo(s, "Awa")
	shoot := func(name string) { p.shoot(filepath.Join(folder, name+".png")) }

	p.open("/console/c/" + s.client)
	shoot("home")
	p.open("/console/c/" + s.client + "/payments")
	shoot("payments")
	waiting := s.pay("242061230014", "5000", "ORDER-1042", object{"description": "Two loaves, coffee"})
	s.until(waiting, "processing")
	p.open("/console/c/" + s.client + "/payments/" + waiting)
	shoot("payment")
	p.open(s.sandboxPath())
	p.order()
	p.until(`document.querySelector("#pin")`)
	shoot("handset")
	p.dress("light", narrow)
	p.open("/console/c/" + s.client + "/collect")
	shoot("collect")
}

// pictured gives the demo client a morning's business.
func (s *till) pictured() {
	s.t.Helper()
	var last string
	for i, end := range []string{"4501", "4502", "0002", "4503", "4504", "0004", "4505", "4506"} {
		last = s.pay("24206123"+end, []string{"5000", "7500", "2500", "12000"}[i%4], "ORDER-10"+string(rune('0'+i/10+3))+string(rune('0'+i%10)), nil)
	}
	s.until(last, "success")
}
