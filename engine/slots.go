package engine

import "sync"

// slots are the calls to operators that may be under way at once. A slot is
// taken when it is decided that a call may begin, before the commit that makes
// it so: two who decide at the same time see each other.
type slots struct {
	mu          sync.Mutex
	size, used  int
	connections int
	by          map[string]int   // connection
	most        map[string]int   // connection; 0: no limit of its own
	back        map[string]int64 // connection: how many were given back
}

// take takes a slot for a call to a connection if one is free. Of several
// connections each may hold as many as are free for the others: one that is
// slow leaves half of them, two leave a third.
func (s *slots) take(connection string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.size - s.used
	if free == 0 || s.connections > 1 && s.by[connection] >= free {
		return false
	}
	if most := s.most[connection]; most > 0 && s.by[connection] >= most {
		return false
	}
	s.used++
	s.by[connection]++
	return true
}

// room returns how many slots take would give to a connection one after the
// other.
func (s *slots) room(connection string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.size - s.used
	if s.connections > 1 { // each that is taken leaves one less to the others
		n = max(0, n-s.by[connection]+1) / 2
	}
	if most := s.most[connection]; most > 0 {
		n = min(n, max(0, most-s.by[connection]))
	}
	return n
}

func (s *slots) put(connection string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.by[connection]--
	s.back[connection]++
}

// returned counts the slots that calls to a connection have given back.
func (s *slots) returned(connection string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back[connection]
}

func (s *slots) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size - s.used
}
