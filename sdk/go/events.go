package till

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// Events are the calls about the event log.
type Events struct{ c *Client }

// Read returns the events after a sequence, oldest first. It waits for one if
// there is none, at most 60 s.
func (s *Events) Read(ctx context.Context, after int64, limit int, wait time.Duration) (*EventPage, error) {
	q := url.Values{"after": {strconv.FormatInt(after, 10)}}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	if wait >= time.Second {
		q.Set("wait", strconv.Itoa(int(wait/time.Second)))
	}
	return read[EventPage](ctx, s.c, request{op: opListEvents, query: q, wait: wait})
}

// Get reads an event.
func (s *Events) Get(ctx context.Context, id string) (*Event, error) {
	return read[Event](ctx, s.c, request{op: opGetEvent, params: []string{id}})
}

// Redeliver posts an event again, to one endpoint or to all.
func (s *Events) Redeliver(ctx context.Context, id string, to Redeliver) (*Redelivered, error) {
	body, err := render(to)
	if err != nil {
		return nil, err
	}
	return read[Redelivered](ctx, s.c, request{op: opRedeliverEvent, params: []string{id}, body: body})
}
