package webhook

import "till"

// How many bytes of events are in the hands of those who run endpoints. Nobody
// begins without room for a few events of any size; how many more are read at once
// depends on what the others leave.
const (
	maxMemory       = 32 << 20  // of all
	maxClientMemory = 8 << 20   // of one client's endpoints
	maxChunkMemory  = 2 << 20   // of one window: as much as one of small events takes
	minMemory       = 256 << 10 // three of the largest: a retry, a new one, a replay
)

// reserveMemory takes room for a window, and reports whether there is any.
func (d *Dispatcher) reserveMemory(client till.ID, r *endpointWorker) bool {
	if r.memory < minMemory {
		if d.memory.Take(client, minMemory-r.memory) != nil {
			return false
		}
		r.memory = minMemory
	}
	return true
}

// growMemory takes more room, as far as the others leave some, and returns how many
// bytes may be read: the last event of each kind may be beyond them.
func (d *Dispatcher) growMemory(client till.ID, r *endpointWorker) int64 {
	r.memory += d.memory.TakeSome(client, maxChunkMemory-r.memory)
	return r.memory - minMemory
}

// shrinkMemory gives back what is not needed.
func (d *Dispatcher) shrinkMemory(client till.ID, r *endpointWorker, needed int64) {
	if needed < r.memory {
		d.memory.Give(client, r.memory-needed)
		r.memory = needed
	}
}
