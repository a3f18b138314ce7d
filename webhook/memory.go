package webhook

import "till"

// How many bytes of events workers hold. A worker starts only with memory for a few events
// of any size. How much more it reads at once depends on what the other workers leave.
const (
	maxMemory       = 32 << 20  // of all workers
	maxClientMemory = 8 << 20   // of one client's endpoints
	maxChunkMemory  = 2 << 20   // of one chunk: as much as a full chunk of small events takes
	minMemory       = 256 << 10 // the three largest events: a retry, a new one, a replay
)

// reserveMemory reserves memory for a chunk and reports whether there was enough.
func (d *Dispatcher) reserveMemory(client till.ID, r *endpointWorker) bool {
	if r.memory < minMemory {
		if d.memory.Take(client, minMemory-r.memory) != nil {
			return false
		}
		r.memory = minMemory
	}
	return true
}

// growMemory reserves more memory if there is some, and returns how many bytes may be read.
// The last event of each kind may exceed them.
func (d *Dispatcher) growMemory(client till.ID, r *endpointWorker) int64 {
	r.memory += d.memory.TakeSome(client, maxChunkMemory-r.memory)
	return r.memory - minMemory
}

// shrinkMemory gives back the memory beyond what is needed.
func (d *Dispatcher) shrinkMemory(client till.ID, r *endpointWorker, needed int64) {
	if needed < r.memory {
		d.memory.Give(client, r.memory-needed)
		r.memory = needed
	}
}
