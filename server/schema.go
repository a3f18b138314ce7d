package server

import (
	"context"
	"errors"
	"time"

	"till/internal/loop"
	"till/store"
)

// schemaInterval is how soon a running server notices that the schema is no
// longer its own.
const schemaInterval = 2 * time.Second

// watchSchema tells when the database's schema has become another than this
// program's, because a newer release has migrated it. What that release relies on
// being written this one does not know, so it must not go on: it stops in order,
// recording what it has under way, and does not start again.
func (s *Server) watchSchema(ctx context.Context, changed chan<- error) {
	loop.Run(ctx, loop.Options{Interval: schemaInterval, Step: func(ctx context.Context) time.Duration {
		err := s.store.CheckSchema(ctx)
		var schema *store.SchemaError
		if errors.As(err, &schema) { // a database that is away says nothing
			select {
			case changed <- err:
			default: // it has been told
			}
		}
		return -1
	}})
}
