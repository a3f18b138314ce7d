package provider

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"till"
)

// Deps is what an adapter is given besides its own configuration.
type Deps struct {
	Connection string // its name
	Tokens     Tokens
	Log        *slog.Logger
	Now        func() time.Time
	// CallbackURL is the connection's one callback address, "" if callbacks cannot reach
	// us. Requests have an address of their own.
	CallbackURL string
	// Conns is how many connections it may keep open; 0 means 64.
	Conns int
	// Dial replaces the dialer, for a network in memory; nil means the system's.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Tokens stores operators' access tokens for all instances: encrypted in the
// database, and refreshed by one instance at a time.
type Tokens interface {
	// Token returns the valid token of that name. If there is none, it calls
	// fetch, once for all waiting callers, and stores the token for its lifetime,
	// less a margin. stale is a token that the operator has just refused, "" if
	// none; it is never returned again.
	Token(ctx context.Context, name, stale string, fetch func(ctx context.Context) (token string, life time.Duration, err error)) (string, error)
}

// CallbackRequest is a call by an operator, as received over HTTP.
type CallbackRequest struct {
	Method string
	URL    string              // the callback address, with scheme and host
	Header map[string][]string // in canonical form
	Body   []byte              // at most 64 KiB
}

// Callback is what an adapter reads in a callback.
type Callback struct {
	// Reference is ours, as the operator repeats it; zero if it does not.
	Reference till.ID
	// Handle is the operator's own id of the request, "" if it is not named.
	Handle string
}

// CallbackReader is a provider whose operator calls one address for all requests, or signs
// its callbacks. Without it, only the path identifies a callback.
type CallbackReader interface {
	Provider
	// ReadCallback reads a callback. It returns an error if the call is not the
	// operator's: its signature is wrong, or missing where one is required. The
	// content of a callback is never trusted; it only causes a check.
	ReadCallback(c CallbackRequest) (Callback, error)
}

// HandleReader is a provider whose callbacks name the handle of their request, and each
// handle belongs to one request. A callback is kept for a request only if no other request
// has the handle. An answer with another request's handle is not trusted.
type HandleReader interface {
	Provider
	// HandleInCallback returns the handle in a callback, "" if there is none. Then the
	// callback is useless.
	HandleInCallback(body []byte) string
}

// Claim is what a callback says about a request. It is not trusted: only a
// status read or a statement is the operator's answer. For a request that is not
// in the database, it is the only information.
type Claim struct {
	Outcome   Outcome // a final outcome or Reversed; "" if it does not say
	Reference till.ID // ours, as the operator repeats it; zero if it does not
	Receipt   string
	Amount    till.Money // no currency: it does not say
}

// ClaimReader is a provider that can read what a callback claims.
type ClaimReader interface {
	// ReadClaim returns false if body is no callback about a request of this kind.
	ReadClaim(body []byte) (Claim, bool)
}

// Tester is a provider that can test its account without moving money, for
// 'till doctor'.
type Tester interface {
	// Test returns nil if the operator accepts our credentials. Its error says what is
	// wrong and what to do. Unproven means that nothing was found wrong, but not everything
	// could be tested.
	Test(ctx context.Context) error
}

// Unproven is the error of a Test that found nothing wrong, but could not test everything.
// It says what is known and what is not.
type Unproven string

// Error implements error.
func (u Unproven) Error() string { return string(u) }

// CallbackChecker is a provider that knows which callback addresses its operator would not
// call, or which callbacks it would itself reject.
type CallbackChecker interface {
	// CheckCallback returns nil if callbacks can come to an address, "" if the address is
	// unknown. Its error says why not.
	CheckCallback(address string) error
}

// CompanyReader is a provider whose operator says whose account it is. Only that distinguishes
// the credentials of two accounts at one address, if they name none themselves.
type CompanyReader interface {
	Provider
	// Company asks the operator for the name of the company whose account it is, "" if it
	// has none. The name stays while credentials change. agreed says that the configuration
	// names this company: a person has agreed to it.
	Company(ctx context.Context) (name string, agreed bool, err error)
}

// OtherCompany is the error that credentials are those of another company's account.
type OtherCompany struct{ Told, Want string }

// Error implements error.
func (o OtherCompany) Error() string {
	return fmt.Sprintf("the credentials are those of another account: the operator says that it is the company %q, and it should be %q. "+
		"Put the right credentials back, and give another account a connection of its own; if the company has a new name, write it into the connection's settings (company)", o.Told, o.Want)
}

// Unwrap returns ErrCredentials: they are wrong, even if the operator would take them.
func (OtherCompany) Unwrap() error { return ErrCredentials }

// Delayer is a provider that delays some requests before they are sent.
type Delayer interface {
	// SendDelay returns the delay.
	SendDelay(r Request) time.Duration
}

// Selective is a provider that serves some markets only: an account in one
// country, say. Without it a connection serves whatever is routed to it.
type Selective interface {
	// Serves reports whether a request of a method can be sent in a country and
	// currency. The answer never changes.
	Serves(method, country, currency string) bool
}

// OrNil returns p, and a nil interface for a nil pointer.
func OrNil[T any, P interface {
	*T
	Provider
}](p P) Provider {
	if p == nil {
		return nil
	}
	return p
}

// Serves reports whether requests of a method in a country and currency can be
// sent to a provider, which may be nil.
func Serves(p Provider, method, country, currency string) bool {
	if s, ok := p.(Selective); ok {
		return s.Serves(method, country, currency)
	}
	return p != nil
}
