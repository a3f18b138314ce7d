package server

// GiveUpJournalSegment ends the journal's open segment: the next record needs the folder.
func (s *Server) GiveUpJournalSegment() error { return s.journal.Close() }
