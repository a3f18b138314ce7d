package airtel

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"

	"till/provider"
	"till/provider/wire"
)

// ReadCallback reads a callback of Airtel's. All callbacks of an application come to one
// address. They have a hash if that is turned on in the portal.
func (p *service) ReadCallback(c provider.CallbackRequest) (provider.Callback, error) {
	return readCallback(c.Body, p.callbackKey)
}

// readCallback reads a callback's body. With a key, the hash must be there and right.
// Sources differ on what is hashed: the object with its name, or the object alone. Either
// is accepted, over the bytes as they came.
func readCallback(body []byte, key string) (provider.Callback, error) {
	var c struct {
		Transaction json.RawMessage `json:"transaction"`
		Hash        wire.Text       `json:"hash"`
	}
	if err := wire.Decode(body, &c); err != nil {
		return provider.Callback{}, err
	}
	if key != "" {
		got, err := base64.StdEncoding.DecodeString(string(c.Hash))
		if err != nil || len(got) != sha256.Size {
			return provider.Callback{}, errors.New("the callback has no hash")
		}
		named := append(append([]byte(`{"transaction":`), c.Transaction...), '}')
		if !hmac.Equal(got, mac(key, named)) && !hmac.Equal(got, mac(key, c.Transaction)) {
			return provider.Callback{}, errors.New("the hash of the callback is wrong")
		}
	}
	var t struct {
		ID wire.Text `json:"id"`
	}
	if err := wire.Decode(c.Transaction, &t); err != nil {
		return provider.Callback{}, err
	}
	return provider.Callback{Reference: parseTransactionID(string(t.ID))}, nil
}

// ReadClaim reads what a callback says. It names no amount, and is the same for payments
// and payouts.
func (p *service) ReadClaim(body []byte) (provider.Claim, bool) {
	var c struct {
		Transaction struct {
			ID      wire.Text `json:"id"`
			Status  wire.Text `json:"status_code"`
			Receipt wire.Text `json:"airtel_money_id"`
		} `json:"transaction"`
	}
	if err := wire.Decode(body, &c); err != nil || c.Transaction.ID == "" {
		return provider.Claim{}, false
	}
	out := provider.Claim{Reference: parseTransactionID(string(c.Transaction.ID)), Receipt: wire.Truncate(string(c.Transaction.Receipt), maxCode)}
	switch c.Transaction.Status {
	case "TS":
		out.Outcome = provider.Success
	case "TF":
		out.Outcome = provider.Failed
	case "TE":
		out.Outcome = provider.Expired
	}
	return out, true
}

func mac(key string, text []byte) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write(text)
	return h.Sum(nil)
}
