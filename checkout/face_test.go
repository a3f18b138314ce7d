package checkout_test

import (
	"testing"
	"time"

	"till"
	"till/checkout"
	"till/store"
)

const minute = till.Time(60_000_000)

// sceneNow is the moment of all scenes.
const sceneNow = 1_000 * minute

// ask returns an ask whose payment was created some time ago and has two minutes.
func ask(n int, status till.Status, age time.Duration, change func(*store.PaymentRow)) *checkout.Asked {
	p := &store.PaymentRow{Payment: till.Payment{Status: status, CreatedAt: sceneNow.Add(-age)}}
	p.ExpiresAt = p.CreatedAt.Add(2 * time.Minute)
	if change != nil {
		change(p)
	}
	return &checkout.Asked{N: n, Payment: p}
}

func attention(p *store.PaymentRow) { p.Attention = true }
func late(p *store.PaymentRow)      { p.LateEvent = 7 }
func reversed(p *store.PaymentRow)  { p.ReversedAt = sceneNow }

// kindsOfAsk are all that an ask can be, and what its own address shows while nothing else
// is in the way.
var kindsOfAsk = []struct {
	name           string
	make           func(n int) *checkout.Asked
	live, credited bool
	own            checkout.Face
}{
	{"refused", func(n int) *checkout.Asked { return &checkout.Asked{N: n, Refused: true} }, false, false, checkout.FaceAgain},
	{"not made", func(n int) *checkout.Asked { return &checkout.Asked{N: n} }, true, false, checkout.FaceCalling},
	{"new", func(n int) *checkout.Asked { return ask(n, till.Pending, time.Second, nil) }, true, false, checkout.FaceCalling},
	{"no answer", func(n int) *checkout.Asked { return ask(n, till.Pending, time.Minute, nil) }, true, false, checkout.FaceWait},
	{"no answer, over", func(n int) *checkout.Asked { return ask(n, till.Pending, time.Hour, nil) }, true, false, checkout.FaceWait},
	{"on the phone", func(n int) *checkout.Asked { return ask(n, till.Processing, time.Second, nil) }, true, false, checkout.FacePrompt},
	{"held, over", func(n int) *checkout.Asked { return ask(n, till.Processing, time.Hour, nil) }, true, false, checkout.FaceWait},
	{"held, last moment", func(n int) *checkout.Asked { return ask(n, till.Processing, 2*time.Minute, nil) }, true, false, checkout.FaceWait},
	{"open, on a desk", func(n int) *checkout.Asked { return ask(n, till.Processing, time.Hour, attention) }, true, false, checkout.FaceCheck},
	{"failed", func(n int) *checkout.Asked { return ask(n, till.Failed, time.Minute, nil) }, false, false, checkout.FaceAgain},
	{"expired", func(n int) *checkout.Asked { return ask(n, till.Expired, time.Hour, nil) }, false, false, checkout.FaceAgain},
	{"failed, on a desk", func(n int) *checkout.Asked { return ask(n, till.Failed, time.Hour, attention) }, true, false, checkout.FaceCheck},
	{"paid", func(n int) *checkout.Asked { return ask(n, till.Success, time.Minute, nil) }, false, true, checkout.FacePaid},
	{"paid, on a desk", func(n int) *checkout.Asked { return ask(n, till.Success, time.Minute, attention) }, false, true, checkout.FacePaid},
	{"paid late", func(n int) *checkout.Asked { return ask(n, till.Failed, time.Hour, late) }, false, true, checkout.FacePaid},
	{"taken back", func(n int) *checkout.Asked { return ask(n, till.Success, time.Hour, reversed) }, false, true, checkout.FaceBack},
}

// Every input has its face: all kinds of the address's ask and of the last one, with all
// that is around them. What a face promises is checked beside it.
func TestFaces(t *testing.T) {
	t.Parallel()
	seen := map[checkout.Face]int{}
	for last := -1; last < len(kindsOfAsk); last++ {
		for own := -2; own < len(kindsOfAsk); own++ { // -2: the shared address; -1: that of the last ask
			for bits := range 64 {
				s := checkout.Scene{Paid: bits&1 != 0, Over: bits&2 != 0, Spent: bits&4 != 0, Closed: bits&8 != 0, Unsure: bits&16 != 0, Expires: sceneNow + minute, Now: sceneNow}
				if bits&32 != 0 {
					s.Slow = sceneNow + minute
				}
				name := "no ask"
				ownKind := own
				if last >= 0 {
					s.Last, name = kindsOfAsk[last].make(2), "last "+kindsOfAsk[last].name
				}
				switch {
				case own == -2:
				case last < 0:
					continue // an ask's address without any ask
				case own == -1:
					s.Own, ownKind = s.Last, last
				default:
					s.Own, name = kindsOfAsk[own].make(1), name+", own "+kindsOfAsk[own].name
				}
				got := s.Look()
				seen[got]++
				if want := wantFace(&s, ownKind, last); got != want {
					t.Fatalf("%s, %+v: %s, want %s", name, s, got, want)
				}
				anyLive := last >= 0 && kindsOfAsk[last].live || ownKind >= 0 && kindsOfAsk[ownKind].live
				anyMoney := s.Paid || last >= 0 && kindsOfAsk[last].credited || ownKind >= 0 && kindsOfAsk[ownKind].credited
				if s.NothingTaken() != (!anyLive && !anyMoney) {
					t.Fatalf("%s, %+v: nothing was taken: %v", name, s, s.NothingTaken())
				}
				switch got {
				case checkout.FaceForm, checkout.FaceSure, checkout.FaceAgain, checkout.FaceSlow, checkout.FaceSpent, checkout.FaceClosed, checkout.FaceOff:
					if !s.NothingTaken() {
						t.Fatalf("%s, %+v: %s though money was or may be taken", name, s, got)
					}
				}
				if got.Live() && !anyLive {
					t.Fatalf("%s, %+v: %s though nothing is under way", name, s, got)
				}
			}
		}
	}
	for _, f := range checkout.Faces {
		if seen[f] == 0 {
			t.Errorf("no scene has the face %s", f)
		}
	}
	if len(seen) != len(checkout.Faces) {
		t.Errorf("%d faces are seen, %d are listed", len(seen), len(checkout.Faces))
	}
}

// wantFace is the table of the design, read from the top.
func wantFace(s *checkout.Scene, own, last int) checkout.Face {
	switch {
	case own >= 0 && (kindsOfAsk[own].live || kindsOfAsk[own].credited):
		return kindsOfAsk[own].own
	case s.Paid || last >= 0 && kindsOfAsk[last].credited:
		return checkout.FaceDone
	case last >= 0 && kindsOfAsk[last].live:
		return checkout.FaceBusy
	case s.Over:
		return checkout.FaceClosed
	case s.Spent:
		return checkout.FaceSpent
	case s.Closed:
		return checkout.FaceOff
	case s.Slow > 0:
		return checkout.FaceSlow
	case s.Unsure:
		return checkout.FaceSure
	case own >= 0:
		return checkout.FaceAgain
	}
	return checkout.FaceForm
}

// Times are what they say at their edges.
func TestFacesAtTheEdges(t *testing.T) {
	t.Parallel()
	scene := func(own *checkout.Asked) *checkout.Scene {
		return &checkout.Scene{Own: own, Last: own, Expires: sceneNow + minute, Now: sceneNow}
	}
	for _, c := range []struct {
		name string
		own  *checkout.Asked
		want checkout.Face
	}{
		{"called for ten seconds", ask(1, till.Pending, 10*time.Second, nil), checkout.FaceWait},
		{"called for less", ask(1, till.Pending, 10*time.Second-time.Microsecond, nil), checkout.FaceCalling},
		{"in time", ask(1, till.Processing, 2*time.Minute-time.Microsecond, nil), checkout.FacePrompt},
		{"over", ask(1, till.Processing, 2*time.Minute, nil), checkout.FaceWait},
		{"a window shorter than the call", ask(1, till.Pending, 5*time.Second, func(p *store.PaymentRow) { p.ExpiresAt = sceneNow }), checkout.FaceWait},
	} {
		if got := scene(c.own).Look(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	s := &checkout.Scene{Expires: sceneNow, Now: sceneNow}
	if got := s.Look(); got != checkout.FaceClosed {
		t.Errorf("at its end a checkout shows %s", got)
	}
	s = &checkout.Scene{Expires: sceneNow + 1, Slow: sceneNow, Now: sceneNow}
	if got := s.Look(); got != checkout.FaceForm {
		t.Errorf("at the end of a limit a checkout shows %s", got)
	}
	live := ask(1, till.Processing, time.Second, nil)
	s = &checkout.Scene{Last: live, Own: live, Expires: sceneNow - minute, Over: true, Now: sceneNow}
	if got := s.Look(); got != checkout.FacePrompt {
		t.Errorf("a prompt on the phone shows %s once the checkout's time is over", got)
	}
}
