package webhook

import "till"

// How many bytes of events are in the hands of those who run endpoints. Nobody
// begins without room for a few events of any size; how many more are read at once
// depends on what the others leave.
const (
	maxRoom       = 32 << 20  // of all
	maxClientRoom = 8 << 20   // of one client's endpoints
	maxWindowRoom = 2 << 20   // of one window: as much as one of small events takes
	minRoom       = 256 << 10 // three of the largest: a retry, a new one, a replay
)

// enter takes room for a window, and reports whether there is any.
func (d *Deliverer) enter(client till.ID, r *runner) bool {
	if r.room < minRoom {
		if d.room.Take(client, minRoom-r.room) != nil {
			return false
		}
		r.room = minRoom
	}
	return true
}

// widen takes more room, as far as the others leave some, and returns how many
// bytes may be read: the last event of each kind may be beyond them.
func (d *Deliverer) widen(client till.ID, r *runner) int64 {
	r.room += d.room.TakeSome(client, maxWindowRoom-r.room)
	return r.room - minRoom
}

// narrow gives back what is not needed.
func (d *Deliverer) narrow(client till.ID, r *runner, needed int64) {
	if needed < r.room {
		d.room.Give(client, r.room-needed)
		r.room = needed
	}
}
