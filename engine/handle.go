package engine

import (
	"context"
	"errors"

	"till"
	"till/provider"
	"till/store"
)

// errOthersHandle says that an answer is about a request of another payment or
// payout.
var errOthersHandle = errors.New("engine: the answer is about another's request")

// handles reads which answers bring a handle that belongs to another payment or
// payout, of any client. Only a batch that rereads needs to know. Any other
// assumes that they are new, and the database rejects one that is not.
func (b *Recording[R]) handles(ctx context.Context, answers []*Answer, reread bool) error {
	b.foreignHandle = make(map[*Answer]bool)
	for _, a := range answers {
		s := b.Steps[a.Ref]
		if !reread || s == nil || newHandle(s, a, b.traitsOf(a), s.CheckedAt) == "" || !b.worker.handlesAreUnique(a.Connection) {
			continue
		}
		f, err := b.Tx.SubjectByHandle(ctx, a.Connection, a.Result.Handle)
		if err != nil {
			return err
		}
		b.foreignHandle[a] = f != nil && f.Ref != a.Ref
	}
	return nil
}

// withoutForeignHandle returns what is left of an answer with another subject's handle. An
// answer to a send is about this request, but its handle cannot be right: the handle is
// left out. A check with a handle that only a callback named says nothing about this row:
// that callback is dropped.
func (b *Recording[R]) withoutForeignHandle(row R, a *Answer) *Answer {
	if !b.foreignHandle[a] {
		return a
	}
	left := *a
	b.alreadyRecorded[&left] = b.alreadyRecorded[a]
	if a.Action == Submit {
		left.Result.Handle = ""
		b.OpenCase(row, CaseHandleReused, till.Because(till.ReasonHandleReused))
		return &left
	}
	if left.Result = (provider.Result{}); a.Err == nil {
		left.Err = errOthersHandle
	}
	if s := b.Steps[a.Ref]; s.WakeSeq == a.WakeSeq { // otherwise another callback has come since
		b.callbacksToForget = append(b.callbacksToForget, a.Ref)
	}
	b.OpenCase(row, CaseHandleReused, till.Because(till.ReasonCallbackForeign))
	return &left
}

// learnHandle collects the handle of an answer, so that callbacks find the row by it, and
// no other row takes it.
func (b *Recording[R]) learnHandle(p store.Subject, s *store.Step, a *Answer) {
	h, alone := newHandle(s, a, b.traitsOf(a), s.CheckedAt), b.worker.handlesAreUnique(a.Connection)
	if _, called := b.worker.c.Connections[a.Connection].(provider.CallbackReader); h != "" && (alone || called) {
		b.newHandles = append(b.newHandles, store.Named{Connection: a.Connection, Handle: h, Ref: p.Ref, Kind: b.table.Kind, Alone: alone})
	}
}

// traitsOf returns how the operator of an answer behaves.
func (b *Recording[R]) traitsOf(a *Answer) provider.Traits {
	t, _ := b.worker.traits(a.Connection)
	return t
}

// handlesAreUnique reports whether each of an operator's handles names one request, and its
// callbacks contain them.
func (w *Worker) handlesAreUnique(connection string) bool {
	_, ok := w.c.Connections[connection].(provider.HandleReader)
	return ok
}

// handleIn returns the handle in a connection's callback, and whether its callbacks have
// one.
func (w *Worker) handleIn(connection string, body []byte) (handle string, reads bool) {
	if p, ok := w.c.Connections[connection].(provider.HandleReader); ok {
		return p.HandleInCallback(body), true
	}
	return "", false
}
