package store

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
