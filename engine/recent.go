package engine

import (
	"errors"
	"sync"

	"till/internal/quota"
	"till/store"
)

// The limits of the cache: what a fully loaded instance sends within a few seconds. Beyond
// them the oldest entries are dropped. One client may not take all of it, so that it does
// not push out other clients' entries.
const (
	maxRecent            = 8192
	maxRecentBytes       = 32 << 20
	maxClientRecentBytes = 24 << 20
)

// recentSends caches what this instance sent recently, so that the first check
// need not read the payment again.
type recentSends struct {
	mu    sync.Mutex
	bytes *quota.Quota
	byRef map[store.Ref]cachedInstruction
	order []store.Ref // a ring of maxJobs entries
	first int         // the oldest
	count int
}

// cachedInstruction is an instruction and its size in bytes.
type cachedInstruction struct {
	*Instruction
	size int64
}

// size is about how many bytes an instruction takes, with its row and its entry.
func (j *Instruction) size() int64 {
	const fixed = 2 << 10
	r := &j.Request
	n := fixed + len(r.Description) + len(r.CallbackURL)
	if row, ok := j.Row.(*store.PaymentRow); ok {
		n += len(row.Reference) + len(row.Document)
	}
	return int64(n)
}

// keep caches an instruction, and drops the oldest if there are too many. A re-send keeps
// the cached one: the parts that are used never change, except the row, which is used only
// after a first send.
func (k *recentSends) keep(j *Instruction) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byRef == nil {
		k.byRef, k.order = make(map[store.Ref]cachedInstruction), make([]store.Ref, maxRecent)
		k.bytes = quota.New(maxRecentBytes, maxClientRecentBytes)
	}
	if k.byRef[j.Ref].Instruction != nil {
		return
	}
	if k.count == maxRecent {
		k.forgetOldest()
	}
	n := j.size()
	err := k.bytes.Take(j.Ref.Client, n)
	for errors.Is(err, quota.ErrFull) && k.count > 0 {
		k.forgetOldest()
		err = k.bytes.Take(j.Ref.Client, n)
	}
	if err != nil {
		return
	}
	k.order[(k.first+k.count)%maxRecent] = j.Ref
	k.count++
	k.byRef[j.Ref] = cachedInstruction{j, n}
}

// forgetOldest makes room. An instruction that has ended has left only its place in the
// ring.
func (k *recentSends) forgetOldest() {
	ref := k.order[k.first]
	k.first, k.count = (k.first+1)%maxRecent, k.count-1
	k.forget(ref)
}

func (k *recentSends) forget(ref store.Ref) {
	if j := k.byRef[ref]; j.Instruction != nil {
		delete(k.byRef, ref)
		k.bytes.Give(ref.Client, j.size)
	}
}

// note replaces the cached rows by what a commit leaves. A nil row has ended, and
// its entry goes. It runs before the commit, because a claim right after the
// commit must not find the old row.
func (k *recentSends) note(left map[store.Ref]any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for ref, row := range left {
		if row == nil {
			k.forget(ref)
		} else if j := k.byRef[ref]; j.Instruction != nil && j.Row != nil {
			c := *j.Instruction // a copy: tasks may use the cached one
			c.Row = row
			k.byRef[ref] = cachedInstruction{&c, j.size}
		}
	}
}

// find returns the cached instructions of steps, and the refs of the other steps.
// The cache serves only a step that the operator has acknowledged: such a step is
// checked, whatever became of its subject, and a check uses only what never changes.
func (k *recentSends) find(steps []*store.Step) (found map[store.Ref]*Instruction, others []store.Ref) {
	found = make(map[store.Ref]*Instruction, len(steps))
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range steps {
		ref := store.Ref{Client: s.ClientID, ID: s.SubjectID}
		if j := k.byRef[ref]; j.Instruction != nil && s.Acked {
			found[ref] = j.Instruction
		} else {
			others = append(others, ref)
		}
	}
	return found, others
}
