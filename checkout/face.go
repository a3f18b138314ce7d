package checkout

import (
	"time"

	"till"
	"till/store"
)

// Face is what a page shows to a payer.
type Face string

// The faces.
const (
	FaceForm    Face = "form"    // who is paid, how much, and a field for the number
	FaceSure    Face = "sure"    // the number in full, before it is asked
	FaceCalling Face = "calling" // the request is not known to be at the operator
	FacePrompt  Face = "prompt"  // on the phone, in time
	FaceWait    Face = "wait"    // unsure, or the time is over
	FaceCheck   Face = "check"   // a person has to look at it
	FacePaid    Face = "paid"    // credited, at the ask's own address
	FaceBack    Face = "back"    // credited, and the operator took the money back
	FaceAgain   Face = "again"   // ended without money; the payer may try again
	FaceBusy    Face = "busy"    // an ask is under way, and this is not its address
	FaceSlow    Face = "slow"    // a limit, for a while
	FaceSpent   Face = "spent"   // as often as this checkout may ask
	FaceClosed  Face = "closed"  // expired or cancelled
	FaceDone    Face = "done"    // paid, and this is not the address of the ask that paid
	FaceOff     Face = "off"     // nobody can pay here just now
)

// Faces lists every face.
var Faces = []Face{FaceForm, FaceSure, FaceCalling, FacePrompt, FaceWait, FaceCheck, FacePaid, FaceBack, FaceAgain, FaceBusy, FaceSlow, FaceSpent, FaceClosed, FaceDone, FaceOff}

// Live reports whether a face is of money that may still come, so that the page is read
// again.
func (f Face) Live() bool {
	switch f {
	case FaceCalling, FacePrompt, FaceWait, FaceCheck, FaceBusy:
		return true
	}
	return false
}

// Asked is an ask as a page sees it.
type Asked struct {
	N       int
	Refused bool              // it was never a payment, and nothing was sent
	Payment *store.PaymentRow // nil: there is none, or none yet
}

// unmade reports whether the ask was written down and its payment is not there: the moment
// between two commits, or a crash in it.
func (a *Asked) unmade() bool { return a.Payment == nil && !a.Refused }

func (a *Asked) credited() bool { return a.Payment != nil && a.Payment.Credited() }

// checked reports whether a person has to look at it. Then nothing is certain: the operator
// may have reported another amount, or two outcomes.
func (a *Asked) checked() bool { return a.Payment != nil && a.Payment.Attention && !a.credited() }

// live reports whether the ask may still bring money.
func (a *Asked) live() bool {
	return a.unmade() || a.checked() || a.Payment != nil && !a.Payment.Status.Final()
}

// Scene is all that a face depends on.
type Scene struct {
	Own  *Asked // whose address this is; nil at the address that is shared
	Last *Asked // the newest ask; nil: there is none

	Paid    bool      // one of the asks was credited
	Over    bool      // expired or cancelled
	Expires till.Time // when no new ask is taken any more
	Spent   bool      // there were as many asks, or numbers, as there may be
	Closed  bool      // the merchant cannot be paid here: suspended, switched off, no method
	Slow    till.Time // until when a limit holds; zero: none does

	Unsure bool // a number was typed that was not shown in full yet
	Now    till.Time
}

// callingTime is how long a page says that the operator is being called, before it says
// that there is no answer.
const callingTime = 10 * time.Second

// Look returns the face of a scene. It reads nothing: equal scenes have equal faces.
func (s *Scene) Look() Face {
	if s.Own != nil {
		switch {
		case s.Own.credited() && !s.Own.Payment.ReversedAt.IsZero():
			return FaceBack
		case s.Own.credited():
			return FacePaid
		case s.Own.live():
			return s.lookLive()
		}
	}
	switch {
	case s.Paid, s.Last != nil && s.Last.credited():
		return FaceDone
	case s.Last != nil && s.Last.live():
		return FaceBusy
	}
	return s.lookOpen()
}

// lookLive returns the face of an ask that may still bring money, at its own address.
func (s *Scene) lookLive() Face {
	p := s.Own.Payment
	switch {
	case s.Own.unmade():
		return FaceCalling
	case s.Own.checked():
		return FaceCheck
	case p.Status == till.Processing && s.Now < p.ExpiresAt:
		return FacePrompt
	case p.Status == till.Pending && s.Now < min(p.ExpiresAt, p.CreatedAt.Add(callingTime)):
		return FaceCalling
	}
	return FaceWait
}

// lookOpen returns the face where no ask can bring money any more.
func (s *Scene) lookOpen() Face {
	switch {
	case s.Over, s.Now >= s.Expires:
		return FaceClosed
	case s.Spent:
		return FaceSpent
	case s.Closed:
		return FaceOff
	case s.Slow > s.Now:
		return FaceSlow
	case s.Unsure:
		return FaceSure
	case s.Own != nil:
		return FaceAgain
	}
	return FaceForm
}

// NothingTaken reports whether a page may say that no money was taken: nothing was sent, or
// the operator has said of each ask that it ended without money. It is never true while
// anything may still come.
func (s *Scene) NothingTaken() bool {
	if s.Paid || s.Own != nil && (s.Own.credited() || s.Own.live()) {
		return false
	}
	return s.Last == nil || !s.Last.credited() && !s.Last.live()
}
