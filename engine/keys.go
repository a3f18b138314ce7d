package engine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"till"
	"till/internal/seal"
	"till/store"
)

// Keys derives values from the installation's secret that must be the same after a restart,
// a failover or a restored backup. Payments and payouts have different ones. References
// derive from the root and stay the same for ever. Callback tokens derive from the
// generation in use. Tokens of all generations that are not retired are ours.
type Keys struct {
	kind till.SubjectKind
	root []byte
	ring *seal.Ring
}

// NewKeys returns the keys of a kind of subject, with one generation.
func NewKeys(kind till.SubjectKind, secret []byte) Keys { return newKeys(kind, secret, nil) }

func newKeys(kind till.SubjectKind, root []byte, ring *seal.Ring) Keys {
	if ring == nil {
		ring = seal.Single(root)
	}
	return Keys{kind, append([]byte(nil), root...), ring}
}

// derive returns what derives from the root, and so never changes.
func (k Keys) derive(purpose string, parts ...[]byte) []byte {
	return deriveFrom(k.root, purpose, parts...)
}

func deriveFrom(key []byte, purpose string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(purpose))
	h.Write([]byte{0})
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// Reference returns the id by which the operator detects duplicates of a subject. It is
// derived, not random. So a row that was lost and created again by the client's retry meets
// the operator's duplicate check. It has the form of a UUIDv4, because MTN requires one.
func (k Keys) Reference(client till.ID, idempotencyKey string) till.ID {
	key, _ := till.ParseID(idempotencyKey) // checked at creation; case is ignored
	id := till.ID(k.derive(string(k.kind), client[:], key[:])[:16])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// CallbackToken returns the token that names a subject in a callback URL. It has a MAC, so
// nobody else can make one.
func (k Keys) CallbackToken(connection string, ref store.Ref) string {
	return k.callbackToken(k.ring.Live()[0], connection, ref)
}

func (k Keys) callbackToken(key []byte, connection string, ref store.Ref) string {
	purpose := "callback"
	if k.kind != till.SubjectPayment {
		purpose = string(k.kind) + " callback"
	}
	mac := deriveFrom(key, purpose, []byte(connection), ref.Client[:], ref.ID[:])
	return ref.Client.String() + "." + ref.ID.String() + "." + base64.RawURLEncoding.EncodeToString(mac[:16])
}

// parseCallbackToken returns the subject that a callback's token names, if the token is
// ours and of this kind.
func (k Keys) parseCallbackToken(connection, token string) (store.Ref, bool) {
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
	ours := false
	for _, key := range k.ring.Live() {
		ours = ours || hmac.Equal([]byte(token), []byte(k.callbackToken(key, connection, ref)))
	}
	return ref, ours
}
