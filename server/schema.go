package server

import (
	"context"
	"errors"
	"time"

	"till/internal/loop"
	"till/store"
)

// schemaInterval is how soon a running server notices that another release has migrated the
// schema.
const schemaInterval = 2 * time.Second

// watchSchema reports when a newer release has migrated the database's schema. This program
// does not know what that release relies on, so it must not go on. It stops in order,
// records what is under way, and does not start again.
func (s *Server) watchSchema(ctx context.Context, changed chan<- error) {
	loop.Run(ctx, loop.Options{Interval: schemaInterval, Step: func(ctx context.Context) time.Duration {
		err := s.store.CheckSchema(ctx)
		var schema *store.SchemaError
		if errors.As(err, &schema) { // an unavailable database says nothing
			select {
			case changed <- err:
			default: // it is reported already
			}
		}
		return -1
	}})
}
