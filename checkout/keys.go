package checkout

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"

	"till"
)

// Keys derives values from the root of the installation's secret, which never changes: they are
// the same after a restart, a failover or a restored backup.
type Keys struct{ root []byte }

// NewKeys returns the keys of an installation.
func NewKeys(root []byte) Keys { return Keys{append([]byte(nil), root...)} }

func (k Keys) derive(purpose string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, k.root)
	h.Write([]byte("checkout " + purpose))
	h.Write([]byte{0})
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func number(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// Ask returns the idempotency key of a checkout's n-th ask. It derives from the checkout's own
// key, not from its id: a checkout that was lost with a database and made again by the client's
// retry names the same payments.
func (k Keys) Ask(client till.ID, idempotencyKey string, n int) till.ID {
	key, _ := till.ParseID(idempotencyKey) // checked at creation; case is ignored
	return asUUID(k.derive("ask", client[:], key[:], number(n)))
}

// Opened returns the idempotency key of the checkout that a form of a link's page opens.
func (k Keys) Opened(client, link till.ID, nonce []byte) till.ID {
	return asUUID(k.derive("opened", client[:], link[:], nonce))
}

// asUUID returns the first bytes of a derived value as a random UUID.
func asUUID(b []byte) till.ID {
	id := till.ID(b[:16])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// askMACSize is how many characters of five bits the end of an ask's address has.
const askMACSize = 12

// AskMAC returns what the address of an ask ends in: 60 bits that only who asked knows.
func (k Keys) AskMAC(client, checkout till.ID, n int) string {
	b := k.derive("address", client[:], checkout[:], number(n))[:askMACSize]
	for i, c := range b {
		b[i] = alphabet[c%32]
	}
	return string(b)
}

// IsAskMAC reports whether a text is the end of an ask's address.
func (k Keys) IsAskMAC(client, checkout till.ID, n int, text string) bool {
	return subtle.ConstantTimeCompare([]byte(text), []byte(k.AskMAC(client, checkout, n))) == 1
}

// ReturnSecret returns what the way back to the shop is signed with. Clients are told it once,
// when they make the checkout.
func (k Keys) ReturnSecret(client, checkout till.ID) string {
	return base64.RawURLEncoding.EncodeToString(k.derive("return", client[:], checkout[:]))
}
