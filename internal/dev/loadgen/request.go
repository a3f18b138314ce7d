package loadgen

import (
	"bytes"
	crand "crypto/rand"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// KeyPlaceholder is where the idempotency key goes in Body. It has the length of a key; the
// placeholder of the order number has the length of a number.
const (
	KeyPlaceholder       = "00000000-0000-4000-8000-000000000000"
	referencePlaceholder = "000000000000000000"
)

// Body is a typical request of a shop: every common member, metadata with two keys.
const Body = `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},` +
	`"idempotency_key":"` + KeyPlaceholder + `","customer":{"phone":"242061234567","name":"Grace Mabiala"},` +
	`"reference":"ORDER-` + referencePlaceholder + `","description":"Two bags of rice and one litre of oil",` +
	`"metadata":{"shop":"Marche Total, Brazzaville","cart":"cart_7f3a9c51e2"}}`

// template is a complete request except for the bytes that differ each time, so that
// sending one needs no encoding.
type template struct {
	bytes          []byte
	key, reference int // their offsets
	random         *rand.ChaCha8
	orders         *atomic.Int64
}

// newTemplate returns a template for one connection. Keys are random: clients send such
// keys, and they are the hardest for an index. A shop's order numbers ascend over all
// connections, so all share orders.
func newTemplate(host, prefix, apiKey string, orders *atomic.Int64) *template {
	b := fmt.Appendf(nil, "POST %s/payments HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", prefix, host, apiKey, len(Body), Body)
	var seed [32]byte
	crand.Read(seed[:])
	return &template{
		bytes:     b,
		key:       bytes.Index(b, []byte(KeyPlaceholder)),
		reference: bytes.Index(b, []byte(referencePlaceholder)),
		random:    rand.NewChaCha8(seed),
		orders:    orders,
	}
}

// next returns the request with a new key and order number. It is valid until the next
// call.
func (t *template) next() []byte {
	var id [16]byte
	t.random.Read(id[:])
	putUUID(t.bytes[t.key:t.key+len(KeyPlaceholder)], &id)

	r := t.bytes[t.reference : t.reference+len(referencePlaceholder)]
	for i, n := len(r)-1, t.orders.Add(1); i >= 0; i, n = i-1, n/10 {
		r[i] = byte('0' + n%10)
	}
	return t.bytes
}

// putUUID writes 16 random bytes as a UUID of version 4 into b, which has the dashes
// already.
func putUUID(b []byte, id *[16]byte) {
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
}

// NewKey returns a random UUID of version 4.
func NewKey() string {
	var id [16]byte
	crand.Read(id[:])
	b := []byte(KeyPlaceholder)
	putUUID(b, &id)
	return string(b)
}
