package till

import "slices"

// Mode says whether a client moves real money.
type Mode string

// The modes. A test client is served by the sandbox only, a live one never.
const (
	Test Mode = "test"
	Live Mode = "live"
)

// SandboxConnection is the connection that serves test clients, and nobody else.
const SandboxConnection = "sandbox"

// ModeOf says which clients a connection serves.
func ModeOf(connection string) Mode {
	if connection == SandboxConnection {
		return Test
	}
	return Live
}

// Client is a tenant of the service.
type Client struct {
	ID        ID
	Name      string
	Mode      Mode
	Suspended bool
	CreatedAt Time
}

// DefaultZone is the zone of a client that has named none.
const DefaultZone = "UTC"

// Profile is how a client is shown to people. It changes nothing about money.
type Profile struct {
	ClientID    ID
	Name        string // on pages and receipts; "": the client's own
	Zone        string // an IANA time zone, in which its days begin and end
	Country     string // ISO 3166-1 alpha-2, for local phone numbers; "" if it has none
	Language    string // of receipts: "en" or "fr"; "": that of the person who prints
	ReceiptHead string // lines above a receipt
	ReceiptFoot string // lines below it
	PayName     string // on pages that customers pay on; "": the client's own. It is changed by package checkout
}

// Scope is something a key may do.
type Scope string

// The scopes.
const (
	PaymentsRead   Scope = "payments:read"
	PaymentsWrite  Scope = "payments:write"
	PayoutsRead    Scope = "payouts:read"
	PayoutsWrite   Scope = "payouts:write"
	RefundsWrite   Scope = "refunds:write"
	WalletsRead    Scope = "wallets:read"
	WebhooksManage Scope = "webhooks:manage"
	KeysManage     Scope = "keys:manage"
)

// Scopes lists every scope.
var Scopes = []Scope{PaymentsRead, PaymentsWrite, PayoutsRead, PayoutsWrite, RefundsWrite, WalletsRead, WebhooksManage, KeysManage}

// DefaultScopes are those of a key made without naming any: all but those
// that move money out or open further doors.
var DefaultScopes = []Scope{PaymentsRead, PaymentsWrite, PayoutsRead, WalletsRead, WebhooksManage}

// Valid reports whether s is one of the scopes.
func (s Scope) Valid() bool { return slices.Contains(Scopes, s) }

// Key opens a client's account. Its secret is shown once and never stored.
type Key struct {
	ID         string // the public part, inside the key's text
	ClientID   ID
	Name       string
	Scopes     []Scope
	SecretHash [32]byte // SHA-256 of the secret
	CreatedAt  Time
	ExpiresAt  Time   // zero: never
	RevokedAt  Time   // zero: not revoked
	LastUsedAt Time   // zero: never; kept to the minute
	ExposedAt  Time   // zero: never seen in a URL or a search
	MadeBy     string // the id of the key that asked for it; "": a command did, or it is not known
	Replaces   string // the id of the key whose place it takes; "": none
}

// Allows reports whether the key has the scope; every key has the empty one.
func (k *Key) Allows(s Scope) bool { return s == "" || slices.Contains(k.Scopes, s) }

// Active reports whether the key opens anything at t.
func (k *Key) Active(t Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || t < k.ExpiresAt)
}
