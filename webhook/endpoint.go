package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"till"
	"till/internal/nearest"
	"till/store"
	"till/store/webhooks"
)

// Limits of endpoints.
const (
	MaxEndpoints        = 20  // of a client
	MaxDescription      = 255 // characters
	MaxOverlap          = 7 * 24 * time.Hour
	DefaultOverlap      = 24 * time.Hour
	maxLogRanges        = 100 // disabled periods that an endpoint keeps apart
	maxReplays          = 10  // open replays of an endpoint
	maxRequestedPending = 100 // requested deliveries of an endpoint that are still pending
)

// Endpoints creates and changes clients' endpoints. It is safe for concurrent use.
type Endpoints struct {
	Store   *store.Store
	Secrets *SecretSealer
	Sender  *Sender // checks addresses
	Allow   Allowed

	// Wake, if not nil, is called with the client whose endpoints were changed.
	Wake func(ctx context.Context, client till.ID)

	asLive bool // endpoints of test clients keep as little as those of live ones; for tests
}

// Request is what a client wants an endpoint to be. A nil field keeps its value, or its
// default.
type Request struct {
	URL         *string   `json:"url"`
	Events      *[]string `json:"events"`
	Description *string   `json:"description"`
	Enabled     *bool     `json:"enabled"`

	// Secret is one that the client has drawn; of a new endpoint only.
	Secret *string `json:"secret"`

	// Unknown are mistakes of members that nobody knows. They do not reject an endpoint that
	// is there already.
	Unknown []till.FieldError `json:"-"`
}

var errNoEndpoint = &till.Error{Code: till.CodeEndpointNotFound, Detail: "There is no such webhook endpoint."}

func invalid(fields ...till.FieldError) *till.Error {
	return &till.Error{Code: till.CodeValidationFailed, Detail: "Some fields are missing or wrong.", Fields: fields}
}

// check returns all mistakes of a request.
func (s *Endpoints) check(ctx context.Context, client *till.Client, r *Request, create bool) error {
	var fields []till.FieldError
	if r.URL != nil || create {
		raw := ""
		if r.URL != nil {
			raw = *r.URL
		}
		err := CheckURL(raw, client.Mode, s.Allow)
		if err == nil {
			err = s.Sender.checkHost(ctx, raw)
		}
		var e *till.Error
		switch {
		case errors.As(err, &e):
			fields = append(fields, e.Fields...)
		case err != nil:
			return err
		}
	}
	switch {
	case r.Events != nil:
		fields = append(fields, checkKinds(*r.Events)...)
	case create:
		fields = append(fields, till.FieldError{Pointer: "/events", Code: till.FieldRequired, Detail: `Name the events to be told about, or ["*"] for all of them.`})
	}
	if r.Description != nil {
		fields = append(fields, checkDescription(*r.Description)...)
	}
	if r.Secret != nil && create {
		if _, err := ParseSecret(*r.Secret); err != nil {
			fields = append(fields, badSecret)
		}
	}
	if fields != nil {
		return invalid(append(fields, r.Unknown...)...)
	}
	return nil
}

// kindWords are the kinds of events as texts.
var kindWords = func() (words []string) {
	for _, k := range till.EventKinds {
		words = append(words, string(k))
	}
	return words
}()

func checkKinds(kinds []string) (fields []till.FieldError) {
	add := func(i int, code till.Code, detail string) {
		pointer := "/events"
		if i >= 0 {
			pointer += "/" + strconv.Itoa(i)
		}
		fields = append(fields, till.FieldError{Pointer: pointer, Code: code, Detail: detail})
	}
	if len(kinds) == 0 {
		add(-1, till.FieldRequired, `Name at least one event, or "*" for all of them.`)
	}
	if len(kinds) > len(till.EventKinds) {
		add(-1, till.FieldTooMany, "There are not that many events.")
		return fields
	}
	for i, k := range kinds {
		switch {
		case k == till.AllEvents && len(kinds) > 1:
			add(i, till.FieldInvalidFormat, `"*" stands alone.`)
		case k != till.AllEvents && !slices.Contains(till.EventKinds, till.EventKind(k)):
			add(i, till.FieldUnknownEvent, "There is no such event"+cmp.Or(nearest.Hint(k, kindWords), "."))
		case slices.Contains(kinds[:i], k):
			add(i, till.FieldInvalidFormat, "The event is named twice.")
		}
	}
	return fields
}

func checkDescription(text string) []till.FieldError {
	const pointer = "/description"
	if utf8.RuneCountInString(text) > MaxDescription {
		return []till.FieldError{{Pointer: pointer, Code: till.FieldTooLong, Detail: fmt.Sprintf("At most %d characters.", MaxDescription)}}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return []till.FieldError{{Pointer: pointer, Code: till.FieldInvalidFormat, Detail: "Plain text on one line."}}
	}
	return nil
}

// checkScopes rejects kinds that the requester may not read.
func (r *Request) checkScopes(by *Requester) error {
	if r.Events == nil {
		return nil
	}
	var kinds []till.EventKind
	for _, k := range *r.Events {
		if k != till.AllEvents {
			kinds = append(kinds, till.EventKind(k))
		}
	}
	return by.check(kinds)
}

// apply copies a request into an endpoint. It expands "*" to the kinds that the requester
// may read.
func (r *Request) apply(e *webhooks.Endpoint, by *Requester) {
	if r.URL != nil {
		e.URL = *r.URL
	}
	if r.Events != nil {
		e.Events = nil
		for _, k := range *r.Events {
			if k == till.AllEvents {
				e.Events = by.allKinds()
				break
			}
			e.Events = append(e.Events, till.EventKind(k))
		}
		slices.Sort(e.Events)
	}
	if r.Description != nil {
		e.Description = *r.Description
	}
}

// Create makes an endpoint that receives all events from now on. Its secret is returned
// only here. A request with the client's own secret can be repeated: it finds the
// endpoint that the first one made. It returns CodeInsufficientScope for events
// that the requester may not read.
func (s *Endpoints) Create(ctx context.Context, client *till.Client, r *Request, by Requester) (made *Created, err error) {
	if err := s.check(ctx, client, r, true); err != nil {
		return nil, err
	}
	if err := r.checkScopes(&by); err != nil {
		return nil, err
	}
	id, secret := till.NewID(s.Store.Now()), NewSecret()
	if r.Secret != nil {
		secret, _ = ParseSecret(*r.Secret) // checked above
	}
	var first *webhooks.Endpoint
	e := &webhooks.Endpoint{Endpoint: till.Endpoint{ClientID: client.ID, ID: id}, KeepsAnswers: client.Mode == till.Test && !s.asLive, Secret: s.Secrets.Seal(secret, client.ID, id)}
	r.apply(e, &by)
	err = s.audited(ctx, client.ID, by.Actor, func(ctx context.Context, tx *store.Tx, h *store.Head, at till.Time) (auditEntry, error) {
		all, err := webhooks.Endpoints(ctx, tx, client.ID, MaxEndpoints)
		if err != nil {
			return auditEntry{}, err
		}
		if first = s.sameEndpoint(all, r, secret); first != nil {
			return auditEntry{}, nil
		}
		if r.Unknown != nil {
			return auditEntry{}, invalid(r.Unknown...)
		}
		if len(all) >= MaxEndpoints {
			return auditEntry{}, invalid(till.FieldError{Code: till.FieldTooMany, Detail: fmt.Sprintf("A client has at most %d endpoints.", MaxEndpoints)})
		}
		e.CreatedAt, e.UpdatedAt, e.Enabled, e.DisabledAt, e.DisableReason = at, at, true, 0, ""
		e.Start, e.EventsListedFrom, e.Cursor, e.LastEvent = h.LastEvent, h.LastEvent, h.LastEvent, h.LastEvent
		if r.Enabled != nil && !*r.Enabled {
			e.Enabled, e.DisabledAt, e.DisableReason = false, at, till.DisabledByClient
		}
		return auditEntry{"webhook_endpoint.create", id, describeEndpoint(e)}, webhooks.InsertEndpoint(ctx, tx, e)
	}, func(ctx context.Context, tx *store.Tx) (bool, error) {
		made, err := webhooks.ReadEndpoint(ctx, tx, e.Ref())
		return made != nil, err
	})
	switch {
	case err != nil:
		return nil, err
	case first != nil && first.ID != id: // that one is ours, of a commit of which we did not hear
		return &Created{first, secret, true}, nil
	}
	return &Created{e, secret, false}, nil
}

// Patch changes an endpoint. An endpoint that is enabled again receives events from now on;
// those of the disabled period can be replayed. It returns CodeInsufficientScope for events
// that the requester may not read. Such an endpoint the requester can only describe and
// disable.
func (s *Endpoints) Patch(ctx context.Context, client *till.Client, id till.ID, r *Request, by Requester) (*webhooks.Endpoint, error) {
	if err := s.check(ctx, client, r, false); err != nil {
		return nil, err
	}
	if err := r.checkScopes(&by); err != nil {
		return nil, err
	}
	var e *webhooks.Endpoint
	err := s.auditedEndpoint(ctx, client.ID, id, by.Actor, func(ctx context.Context, tx *store.Tx, locked *webhooks.Endpoint, h *store.Head, at till.Time) (auditEntry, error) {
		e = locked
		before := *e
		// Pending deliveries go to the new address, so the requester must be allowed to
		// read all of them.
		if r.URL != nil || r.Events != nil || r.Enabled != nil && *r.Enabled {
			if err := by.checkEndpoint(ctx, tx, e); err != nil {
				return auditEntry{}, err
			}
		}
		r.apply(e, &by)
		var what []string
		if e.URL != before.URL {
			what = append(what, "url "+maskURL(before.URL)+" into "+maskURL(e.URL))
			e.BlockedUntil, e.Answered = 0, 0 // a new address is tried at once, and has to be proven
		}
		if !slices.Equal(e.Kinds(), before.Kinds()) {
			what = append(what, "events "+strings.Join(before.Kinds(), " ")+" into "+strings.Join(e.Kinds(), " "))
			e.EventsListedFrom = h.LastEvent
		}
		if e.Description != before.Description {
			what = append(what, "description")
		}
		if r.Enabled != nil && *r.Enabled != e.Enabled {
			what = append(what, "enabled "+strconv.FormatBool(*r.Enabled))
			f := s.disable
			if *r.Enabled {
				f = s.enable
			}
			if err := f(ctx, tx, e, h.LastEvent, at, by.Actor); err != nil {
				return auditEntry{}, err
			}
		}
		if what == nil {
			return auditEntry{}, nil
		}
		e.UpdatedAt = at
		return auditEntry{"webhook_endpoint.patch", id, strings.Join(what, ", ")}, webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e})
	})
	return e, err
}

func (s *Endpoints) disable(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, _ int64, at till.Time, _ string) error {
	e.Enabled, e.DisabledAt, e.DisableReason, e.NextRetry = false, at, till.DisabledByClient, 0
	return webhooks.DisablePending(ctx, tx, e.Ref(), at)
}

// enable enables an endpoint. The events of the disabled period are a log range that a
// replay can send.
func (s *Endpoints) enable(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, last int64, at till.Time, actor string) error {
	e.Enabled, e.DisabledAt, e.DisableReason = true, 0, ""
	e.Failures, e.FailingSince, e.BlockedUntil, e.ThrottleUntil, e.Answered = 0, 0, 0, 0, 0
	if err := tx.CloseCases(ctx, []store.CaseClosure{{Ref: e.Ref(), By: actor, At: at, Kinds: []string{CaseDisabled}}}); err != nil || e.Cursor >= last {
		return err
	}
	from := e.Cursor + 1
	e.Cursor, e.CursorAt, e.Backlog = last, 0, 0
	open, err := webhooks.OpenRanges(ctx, tx, e.Ref(), false, maxLogRanges)
	if err != nil {
		return err
	}
	if len(open) == maxLogRanges {
		// There are too many ranges: extend the last one to cover this period.
		logRange := open[maxLogRanges-1]
		logRange.To = last
		return webhooks.SaveRange(ctx, tx, logRange)
	}
	return webhooks.InsertRange(ctx, tx, &webhooks.LogRange{ClientID: e.ClientID, EndpointID: e.ID, ID: till.NewID(at), Why: webhooks.RangeDisabled,
		From: from, Next: from, To: last, CreatedAt: at})
}

// Rotate gives an endpoint a new secret, which is returned only here. The old secret also
// signs until the overlap is over. With the secret anyone can sign for the endpoint. So it
// returns CodeInsufficientScope if the endpoint receives kinds that the requester may not
// read. A secret that the client drew can be sent again: if the endpoint has it, nothing
// changes.
func (s *Endpoints) Rotate(ctx context.Context, client, id till.ID, overlap time.Duration, own *string, by Requester) (*webhooks.Endpoint, Secret, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return nil, nil, invalid(till.FieldError{Pointer: "/overlap_seconds", Code: till.FieldInvalidFormat,
			Detail: "The overlap is from 0 to " + strconv.Itoa(int(MaxOverlap/time.Second)) + " seconds."})
	}
	secret := NewSecret()
	if own != nil {
		var err error
		if secret, err = ParseSecret(*own); err != nil {
			return nil, nil, invalid(badSecret)
		}
	}
	sealed := s.Secrets.Seal(secret, client, id)
	var e *webhooks.Endpoint
	err := s.auditedEndpoint(ctx, client, id, by.Actor, func(ctx context.Context, tx *store.Tx, locked *webhooks.Endpoint, _ *store.Head, at till.Time) (auditEntry, error) {
		e = locked
		if err := by.checkEndpoint(ctx, tx, e); err != nil {
			return auditEntry{}, err
		}
		if bytes.Equal(e.Secret, sealed) || own != nil && s.hasSecret(e, secret) {
			return auditEntry{}, nil // already done by a commit whose outcome was unknown, to us or to the client
		}
		e.OldSecret, e.OldUntil = nil, 0
		if overlap > 0 {
			e.OldSecret, e.OldUntil = e.Secret, at.Add(overlap)
		}
		e.Secret, e.UpdatedAt = sealed, at
		return auditEntry{"webhook_endpoint.rotate", id, "overlap " + overlap.String()}, webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e})
	})
	if err != nil {
		return nil, nil, err
	}
	return e, secret, nil
}

// Delete deletes an endpoint and its deliveries.
func (s *Endpoints) Delete(ctx context.Context, client, id till.ID, actor string) error {
	err := s.auditedEndpoint(ctx, client, id, actor, func(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, _ *store.Head, at till.Time) (auditEntry, error) {
		return auditEntry{"webhook_endpoint.delete", id, describeEndpoint(e)}, errors.Join(tx.CloseCases(ctx, []store.CaseClosure{{Ref: e.Ref(), By: actor, At: at}}), webhooks.DeleteEndpoint(ctx, tx, e.Ref()))
	})
	return err
}
