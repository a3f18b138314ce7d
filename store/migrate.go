package store

import (
	"context"

	"till/store/schema"
)

// SchemaError says that the database's schema is not this program's.
type SchemaError = schema.Error

// Migrate brings the schema up to this program's, and returns which migrations were
// applied.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
	return schema.Migrate(ctx, s.db)
}

// CheckSchema returns nil if the schema is exactly this program's, and a SchemaError that
// says what to do if it is not.
func (s *Store) CheckSchema(ctx context.Context) error { return schema.Check(ctx, s.db) }
