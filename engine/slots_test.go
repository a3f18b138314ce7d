package engine

import "testing"

func TestRoomIsWhatCanBeTaken(t *testing.T) {
	t.Parallel()
	for size := 1; size <= 9; size++ {
		for connections := 1; connections <= 3; connections++ {
			for most := 0; most <= 4; most++ {
				for others := 0; others <= size; others++ {
					s := &slots{size: size, used: others, connections: connections, by: map[string]int{}, most: map[string]int{"a": most}, back: map[string]int64{}}
					for {
						room, before := s.room("a"), s.used
						taken := 0
						for s.take("a") {
							taken++
						}
						if taken != room {
							t.Fatalf("%d slots, %d used, %d connections, at most %d: %d were taken of a room for %d", size, before, connections, most, taken, room)
						}
						if taken < 2 {
							break
						}
						s.put("a") // and with one given back
						s.put("a")
						s.used++ // which another takes
					}
				}
			}
		}
	}
	s := &slots{size: 2, by: map[string]int{}, most: map[string]int{}, back: map[string]int64{}}
	if s.take("a"); s.returned("a") != 0 {
		t.Error("a slot counts as given back when it is taken")
	}
	if s.put("a"); s.returned("a") != 1 || s.returned("b") != 0 || s.free() != 2 {
		t.Errorf("given back %d and %d, free %d", s.returned("a"), s.returned("b"), s.free())
	}
}
