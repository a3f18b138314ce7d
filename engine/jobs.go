package engine

import (
	"sync"

	"till/store"
)

// maxJobs is how many jobs are remembered: what is sent within a few seconds
// by an instance that is as busy as it can be.
const maxJobs = 8192

// jobs remembers what was sent from here lately. Most of it is asked about a
// moment later, and need not be read again for that.
type jobs struct {
	mu    sync.Mutex
	byRef map[store.Ref]*Job
	order []store.Ref // the oldest is at next, once it is full
	next  int
}

// keep remembers a job, in the place of the oldest if there are too many. Of
// one that was sent again, what was kept before stays: nothing is used of it
// that could have changed.
func (k *jobs) keep(j *Job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byRef == nil {
		k.byRef = make(map[store.Ref]*Job)
	}
	if k.byRef[j.Ref] != nil {
		return
	}
	if len(k.order) < maxJobs {
		k.order = append(k.order, j.Ref)
	} else {
		delete(k.byRef, k.order[k.next])
		k.order[k.next] = j.Ref
		k.next = (k.next + 1) % maxJobs
	}
	k.byRef[j.Ref] = j
}

// find returns the jobs of those steps for which what is remembered will do,
// and the refs of the others. A step that the operator has acknowledged is asked
// about, whatever has become of its subject since, and to ask takes only what
// never changes.
func (k *jobs) find(steps []*store.Step) (found map[store.Ref]*Job, others []store.Ref) {
	found = make(map[store.Ref]*Job, len(steps))
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range steps {
		ref := store.Ref{Client: s.ClientID, ID: s.SubjectID}
		if j := k.byRef[ref]; j != nil && s.Acked {
			found[ref] = j
		} else {
			others = append(others, ref)
		}
	}
	return found, others
}
