package store

import "context"

// WriterSettings is what a session that writes is told first.
func WriterSettings(s *Store) string { return s.e.(*postgres).settings(true) }

// SetTexts returns the statements about many rows that this process has used.
func SetTexts() (texts []string) {
	pgSets.Range(func(_, set any) bool {
		s := set.(*pgSet)
		texts = append(texts, s.text)
		return true
	})
	return texts
}

// Fetched returns how many blocks of an index this transaction has asked for
// so far, on PostgreSQL.
func Fetched(ctx context.Context, tx *Tx, index string) (n int64, err error) {
	_, err = tx.one(ctx, `SELECT pg_stat_get_xact_blocks_fetched(to_regclass('`+index+`'))`, nil, &n)
	return n, err
}
