package server

import "net"

// GiveUpJournalSegment ends the journal's open segment: the next record needs the folder.
func (s *Server) GiveUpJournalSegment() error { return s.journal.Close() }

// ConsoleAddr is where the console listens if it has an address of its own.
func (s *Server) ConsoleAddr() net.Addr { return addrOf(s.consoleListener) }
