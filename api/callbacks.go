package api

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"till"
	"till/engine"
	"till/internal/door"
	"till/internal/jsonx"
	"till/provider"
	"till/store"
	"till/store/matching"
)

// CallbackPolicy says how the operator of a connection may call us. Without a policy,
// callbacks come to the payments' own addresses, from anywhere.
type CallbackPolicy struct {
	// Secrets returns what the connection's own address, which is the same for all its
	// payments, may end with.
	Secrets func() []string
	// Readers read the callbacks of payments and of payouts. Without readers the address
	// does not exist.
	Readers []provider.CallbackReader
	// Networks are the networks that callbacks may come from; none means anywhere.
	Networks []netip.Prefix
	// Claims read what a callback about unknown money says, by kind of subject.
	Claims map[till.SubjectKind]provider.ClaimReader
}

// receiveCallback handles operators' callbacks. The token in the path names the
// payment or payout, or the body does where an operator calls one address for all.
// The rest of the body is not trusted: only a status read is the operator's answer.
// The callback is committed before the answer, because after a 200 the operator does
// not repeat it.
func (c callbackHandlers) receiveCallback() error {
	connection, token := c.r.PathValue("connection"), c.r.PathValue("token")
	policy := c.s.CallbackPolicies[connection]
	if policy != nil && len(policy.Networks) > 0 && !door.Within(policy.Networks, c.peer()) {
		c.s.Meter.Callback(connection, "network")
		return c.refuse(refusedNetwork, errNoPath)
	}
	f, ours := c.openCallbackToken(connection, token)
	sharedAddress := !ours && policy != nil && len(policy.Readers) > 0 && isOneOf(token, policy.Secrets())
	if !ours && !sharedAddress {
		c.s.Meter.Callback(connection, "forged")
		return c.refuse(refusedToken, errNoPath)
	}
	body, err := c.callbackBody()
	if err != nil {
		c.s.Meter.Callback(connection, "unreadable")
		return err
	}
	var callback provider.Callback
	if sharedAddress {
		if f, callback, err = c.findSubject(connection, policy, body); err != nil {
			return err
		}
	}
	result := "woken"
	err = engine.ErrNotHere
	if f != nil {
		err = c.recordCallback(c.r.Context(), connection, f, body)
	}
	if errors.Is(err, engine.ErrNotHere) {
		result = "stray"
		err = c.recordStray(connection, policy, f, callback, body)
	}
	if err != nil {
		c.s.Meter.Callback(connection, "unavailable")
		c.logged = true
		c.s.Log.Warn("callback not recorded", "request_id", c.id, "connection", connection, "error", err)
		return &till.Error{Code: till.CodeServiceUnavailable}
	}
	c.s.Meter.Callback(connection, result)
	return c.json(http.StatusOK, append(c.buffer(), "{}"...))
}

// isOneOf compares a token with secrets, in a time that reveals none of them.
func isOneOf(token string, secrets []string) bool {
	same := 0
	for _, s := range secrets {
		same |= subtle.ConstantTimeCompare([]byte(token), []byte(s))
	}
	return same == 1
}

func (c callbackHandlers) callbackBody() ([]byte, error) {
	if c.r.ContentLength > jsonx.MaxBody {
		return nil, c.closeConnection(&till.Error{Code: till.CodeBodyTooLarge})
	}
	body, err := io.ReadAll(&quotaReader{http.MaxBytesReader(c.ResponseWriter, c.r.Body, jsonx.MaxBody), c.exchange, c.s.callbacks, till.ID{}})
	if err != nil {
		return nil, c.readError(err)
	}
	return body, nil
}

// findSubject returns the subject of a callback to a connection's own address, nil if it is
// unknown. It returns an error if the callback is not the operator's.
func (c callbackHandlers) findSubject(connection string, policy *CallbackPolicy, body []byte) (*store.CallbackTarget, provider.Callback, error) {
	in := provider.CallbackRequest{Method: c.r.Method, URL: c.s.BaseURL + strings.TrimPrefix(c.r.URL.RequestURI(), "/v1"), Header: c.r.Header, Body: body}
	var callback provider.Callback
	err := errNoReader
	for _, r := range policy.Readers {
		if callback, err = r.ReadCallback(in); err == nil {
			break
		}
	}
	if err != nil {
		c.s.Meter.Callback(connection, "forged")
		c.logged = true
		c.s.Log.Warn("callback not authenticated", "request_id", c.id, "connection", connection, "error", err)
		return nil, callback, errNoPath
	}
	var f *store.CallbackTarget
	err = c.s.Store.View(c.r.Context(), func(tx *store.Tx) (err error) {
		if !callback.Reference.IsZero() {
			if f, err = tx.FindByReference(c.r.Context(), connection, callback.Reference); err != nil || f != nil {
				return err
			}
		}
		if callback.Handle != "" {
			f, err = tx.SubjectByHandle(c.r.Context(), connection, callback.Handle)
		}
		return err
	})
	if err != nil {
		c.s.Meter.Callback(connection, "unavailable")
		c.logged = true
		c.s.Log.Warn("callback target not read", "request_id", c.id, "connection", connection, "error", err)
		return nil, callback, &till.Error{Code: till.CodeServiceUnavailable}
	}
	return f, callback, nil
}

var errNoReader = errors.New("no reader for callbacks of this connection")

// openCallbackToken returns the payment or payout that a callback's token names, if the
// token is ours.
func (c callbackHandlers) openCallbackToken(connection, token string) (*store.CallbackTarget, bool) {
	if ref, ours := c.s.Collector.ParseCallbackToken(connection, token); ours {
		return &store.CallbackTarget{Ref: ref, Kind: till.SubjectPayment}, true
	}
	ref, ours := c.s.Payouts.ParseCallbackToken(connection, token)
	return &store.CallbackTarget{Ref: ref, Kind: till.SubjectPayout}, ours
}

// recordStray records a callback about something unknown: it was lost with a restored
// backup, or was never ours. After that the operator need not repeat it. Nothing is
// recorded if the callback says that no money moved, or names nothing of ours.
func (c callbackHandlers) recordStray(connection string, policy *CallbackPolicy, f *store.CallbackTarget, callback provider.Callback, body []byte) error {
	s := &matching.Stray{Connection: connection, Reference: callback.Reference}
	kinds := []till.SubjectKind{till.SubjectPayment, till.SubjectPayout}
	if f != nil { // named by its address
		s.Client, s.Subject, kinds = f.Ref.Client, f.Ref.ID, []till.SubjectKind{f.Kind}
	}
	var read []till.SubjectKind
	for _, kind := range kinds {
		if policy == nil || policy.Claims[kind] == nil {
			continue
		}
		claim, ok := policy.Claims[kind].ReadClaim(body)
		if !ok {
			continue
		}
		read = append(read, kind)
		s.Claimed, s.Receipt, s.Amount = string(claim.Outcome), claim.Receipt, claim.Amount
		if s.Reference.IsZero() {
			s.Reference = claim.Reference
		}
	}
	if f != nil || len(read) == 1 {
		s.Direction = matching.StrayIn
		if slices.Concat(read, kinds)[0] == till.SubjectPayout {
			s.Direction = matching.StrayOut
		}
	}
	words := []any{"request_id", c.id, "connection", connection, "reference", s.Reference.String(), "subject", s.Subject.String(), "claims", s.Claimed}
	none := s.Claimed != "" && s.Claimed != string(provider.Success) // it says that no money moved, or that it was taken back
	switch {
	case s.Reference.IsZero() && s.Subject.IsZero():
		c.s.Log.Warn("callback for unknown payment or payout", words...)
		return engine.ErrNotHere // it may be about a request that is being sent: the operator must repeat it
	case none || c.s.Strays == nil:
		c.s.Log.Warn("callback for missing payment or payout", words...)
		return nil
	}
	here, fresh, err := c.s.Strays.Record(c.r.Context(), s, body)
	switch {
	case err != nil:
		return err
	case here != nil: // created again by the client's retry
		return c.recordCallback(c.r.Context(), connection, here, body)
	case fresh:
		c.s.Log.Error("stray callback recorded", append(words, "stray", s.ID.String(), "hint", "see 'till strays'")...)
	}
	return nil
}

// recordCallback records a callback for its payment or payout.
func (c callbackHandlers) recordCallback(ctx context.Context, connection string, f *store.CallbackTarget, body []byte) error {
	switch f.Kind {
	case till.SubjectPayment:
		return c.s.Collector.RecordCallback(ctx, connection, f.Ref, body)
	case till.SubjectPayout:
		return c.s.Payouts.RecordCallback(ctx, connection, f.Ref, body)
	}
	return errors.New("unknown kind of subject: " + string(f.Kind))
}
