package relay

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"till"
	"till/internal/dev/remote"
	"till/webhook"
)

// pageSize is how many events are read at once; maxWait is how long the service holds an
// empty answer back.
const (
	pageSize = 200
	maxWait  = 30 * time.Second
)

// secretText is what the secret of a key is derived from. A change would change all secrets.
const secretText = "till listen: webhook secret v1"

// Secret returns the secret that events are signed with for an API key: the same at every
// start, and of no use to find the key.
func Secret(apiKey string) webhook.Secret {
	digest := sha256.Sum256([]byte(apiKey))
	h := hmac.New(sha256.New, digest[:])
	h.Write([]byte(secretText))
	return h.Sum(nil)
}

// event is one event of the log.
type event struct {
	ID        string
	Kind      string
	Sequence  int64
	Subject   string // the id of the payment, payout or endpoint; the event's own id if it has none
	Reference string
	Body      []byte // as the service wrote it
}

// page is a part of the log.
type page struct {
	Items     []json.RawMessage `json:"items"`
	NextAfter int64             `json:"next_after"`
	LogID     string            `json:"log_id"`
}

// readPage reads the log after a sequence, and waits for events if there are none.
func readPage(ctx context.Context, c *remote.Client, after int64, limit int, wait time.Duration) (*page, error) {
	p := &page{}
	err := c.Get(ctx, fmt.Sprintf("/events?after=%d&limit=%d&wait=%d", after, limit, wait/time.Second), wait, p)
	return p, err
}

// readEvent reads what the relay needs of an event. Its body stays as it is.
func readEvent(body []byte) (*event, error) {
	var e struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Sequence int64  `json:"sequence"`
		Data     map[string]struct {
			ID        string  `json:"id"`
			Reference *string `json:"reference"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &e); err != nil || e.ID == "" || strings.Contains(e.ID, ".") || e.Sequence <= 0 {
		return nil, fmt.Errorf("an event of the log cannot be read: %w", errors.Join(err, errors.New("it has no id or sequence")))
	}
	out := &event{ID: e.ID, Kind: e.Type, Sequence: e.Sequence, Subject: e.ID, Body: body}
	noun, _, _ := strings.Cut(e.Type, ".")
	if about, ok := e.Data[noun]; ok && about.ID != "" {
		out.Subject = about.ID
		if about.Reference != nil {
			out.Reference = *about.Reference
		}
	}
	return out, nil
}

// logEnd returns the sequence of the last event, by bisection: a cursor beyond the end is
// refused.
func logEnd(ctx context.Context, c *remote.Client) (int64, error) {
	within := func(after int64) (bool, error) {
		_, err := readPage(ctx, c, after, 1, 0)
		if till.ErrorCode(err) == till.CodeCursorAhead {
			return false, nil
		}
		return err == nil, err
	}
	low, high := int64(0), int64(1024)
	for {
		ok, err := within(high)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		low, high = high, high*8
	}
	for low+1 < high { // low is within the log, high is not
		middle := low + (high-low)/2
		ok, err := within(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// CheckKinds rejects a pattern that no event can match: a kind, "payment.*" or "*".
func CheckKinds(patterns []string) error {
	for _, p := range patterns {
		if !slices.ContainsFunc(till.EventKinds, func(k till.EventKind) bool { return wanted([]string{p}, string(k)) }) {
			return fmt.Errorf("%q is no kind of event: as payment.success, payment.* or *", p)
		}
	}
	return nil
}

// wanted reports whether a kind matches one of the patterns; without patterns all do.
func wanted(patterns []string, kind string) bool {
	for _, p := range patterns {
		if p == "*" || p == kind || strings.HasSuffix(p, ".*") && strings.HasPrefix(kind, p[:len(p)-1]) {
			return true
		}
	}
	return len(patterns) == 0
}
