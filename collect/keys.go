package collect

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"till"
	"till/store"
)

// keys derives what must be the same after a restart, a failover or a
// restored backup from the installation's secret.
type keys struct{ secret []byte }

func newKeys(secret []byte) keys { return keys{append([]byte(nil), secret...)} }

func (k keys) mac(kind string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte(kind))
	h.Write([]byte{0})
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// reference returns what the operator deduplicates a payment by. It is
// derived, not drawn: a row that was lost and created again by the client's
// retry meets the operator's duplicate check instead of charging twice. It
// has the form of a UUIDv4, because MTN demands one.
func (k keys) reference(client till.ID, idempotencyKey string) till.ID {
	key, _ := till.ParseID(idempotencyKey) // checked at creation; without regard to case
	id := till.ID(k.mac("payment", client[:], key[:])[:16])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ReferenceOf returns what a payment is submitted under.
func (c *Collector) ReferenceOf(p *till.Payment) till.ID {
	return c.keys.reference(p.ClientID, p.IdempotencyKey)
}

// token names a payment in a callback URL so that nobody else can: it ends
// in the payment's id and a MAC.
func (k keys) token(connection string, ref store.Ref) string {
	mac := k.mac("callback", []byte(connection), ref.Client[:], ref.ID[:])
	return ref.Client.String() + "." + ref.ID.String() + "." + base64.RawURLEncoding.EncodeToString(mac[:16])
}

// OpenCallback returns the payment that a callback's token names, if the
// token is one of ours.
func (c *Collector) OpenCallback(connection, token string) (store.Ref, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return store.Ref{}, false
	}
	client, err := till.ParseID(parts[0])
	if err != nil {
		return store.Ref{}, false
	}
	id, err := till.ParseID(parts[1])
	if err != nil {
		return store.Ref{}, false
	}
	ref := store.Ref{Client: client, ID: id}
	return ref, hmac.Equal([]byte(token), []byte(c.keys.token(connection, ref)))
}
