package checkout

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"time"

	"till"
	"till/collect"
	"till/internal/request"
)

// What the way back to the shop says of a checkout. It is a hint for the page that the shop
// shows: goods follow the event, or a read of the checkout.
const (
	ReturnPaid   = "paid"
	ReturnOpen   = "open"
	ReturnClosed = "closed"
)

// Return returns the address that leads the payer back to the shop: the one that the shop
// named, with the checkout, its state and the time, signed with the checkout's own secret. It
// is "" if the shop named none.
func (k Keys) Return(c *till.Checkout, state string, now till.Time) string {
	u, err := url.Parse(c.ReturnURL)
	if err != nil || c.ReturnURL == "" {
		return ""
	}
	at := strconv.FormatInt(int64(now)/int64(time.Second/time.Microsecond), 10)
	q := "till_checkout=" + c.ID.String() + "&till_state=" + state + "&till_time=" + at +
		"&till_signature=" + SignReturn(k.ReturnSecret(c.ClientID, c.ID), c.ID, state, at)
	if u.RawQuery != "" {
		q = u.RawQuery + "&" + q
	}
	u.RawQuery = q
	return u.String()
}

// SignReturn returns the signature of a way back, under the secret that the checkout's creation
// answered. at is in seconds.
func SignReturn(secret string, checkout till.ID, state, at string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("return\n" + checkout.String() + "\n" + state + "\n" + at))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Description returns the text that the shop gave the order, "" if it gave none.
func Description(c *till.Checkout) string {
	order, err := collect.OfOrder(c.Document)
	if err != nil {
		return "" // it was erased
	}
	return request.TextOf(order.Description)
}
