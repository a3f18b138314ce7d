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
// one that was sent again, what was kept before stays: what is used of it
// cannot have changed, except for its row, which is used after the first send only.
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

// note takes note of how rows are left, of those jobs that keep them; those of which no
// row is left have ended and are forgotten. It is told before that is committed,
// because whoever claims right after must not find what was there before.
func (k *jobs) note(left map[store.Ref]any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for ref, row := range left {
		if row == nil {
			delete(k.byRef, ref)
		} else if j := k.byRef[ref]; j != nil && j.Row != nil {
			c := *j // tasks may be at work with the one that was kept
			c.Row = row
			k.byRef[ref] = &c
		}
	}
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
