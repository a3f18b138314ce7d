package till

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"time"
)

// What the way back from a checkout's page says. It is a hint for the page that you show:
// ship by the event checkout.paid, or by a read of the checkout.
const (
	ReturnPaid   = "paid"
	ReturnOpen   = "open"   // an ask may still bring money, or the customer turned back
	ReturnClosed = "closed" // expired or cancelled
)

// ReturnError says why a way back is not believed, in one word.
type ReturnError struct{ Word string }

func (e *ReturnError) Error() string { return "till: return: " + e.Word }

// Is makes errors.Is compare by the word.
func (e *ReturnError) Is(target error) bool {
	other, ok := target.(*ReturnError)
	return ok && other.Word == e.Word
}

// Why a way back is not believed.
var (
	ErrReturnNoSecret = &ReturnError{Word: "no_secret"} // a mistake of the program
	ErrReturnUnsigned = &ReturnError{Word: "unsigned"}
	ErrReturnAltered  = &ReturnError{Word: "altered"} // or of another checkout
	ErrReturnTooOld   = &ReturnError{Word: "too_old"}
	ErrReturnTooNew   = &ReturnError{Word: "too_new"} // our clock is behind
)

const returnTolerance = 10 * time.Minute

// VerifyReturn returns what the way back says of a checkout, if the checkout's return secret
// signed it within ten minutes of now. Checkout is the id that you keep with the order, query
// that of the address to which the customer came back. Who kept the address can come again
// within those minutes: what it says was true when it was signed.
func VerifyReturn(secret, checkout string, query url.Values, now time.Time) (string, error) {
	state, at, given := query.Get("till_state"), query.Get("till_time"), query.Get("till_signature")
	switch {
	case secret == "":
		return "", ErrReturnNoSecret
	case state == "" || at == "" || given == "":
		return "", ErrReturnUnsigned
	}
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("return\n" + checkout + "\n" + state + "\n" + at))
	want := base64.RawURLEncoding.EncodeToString(h.Sum(nil))
	seconds, err := strconv.ParseInt(at, 10, 64)
	if !hmac.Equal([]byte(want), []byte(given)) || query.Get("till_checkout") != checkout || err != nil || len(at) > maxTimestamp || !digits(at) {
		return "", ErrReturnAltered
	}
	switch age := now.Sub(time.Unix(seconds, 0)); {
	case age > returnTolerance:
		return "", ErrReturnTooOld
	case age < -returnTolerance:
		return "", ErrReturnTooNew
	}
	return state, nil
}
