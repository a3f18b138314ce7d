package engine

import "sync"

// slots limits how many calls to operators are under way at once. A slot is taken when a
// call is decided on, before the commit that permits it. So two decisions at the same time
// see each other.
type slots struct {
	mu          sync.Mutex
	size, used  int
	connections int
	by          map[string]int   // by connection
	most        map[string]int   // by connection; 0: no limit of its own
	back        map[string]int64 // by connection: how many were given back
}

// take takes a slot for a call to a connection if one is free. A connection may hold as
// many slots as it leaves free for the others. So one slow connection leaves half of them,
// two leave a third.
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

// room returns how many slots in a row take would give to a connection.
func (s *slots) room(connection string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.size - s.used
	if s.connections > 1 { // each one taken leaves one less for the others
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

// returned returns how many slots a connection has given back.
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

// taken returns how many slots a connection holds.
func (s *slots) taken(connection string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[connection]
}
