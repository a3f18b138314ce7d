package books

import (
	"context"

	"till"
	"till/store"
	"till/store/auditlog"
	"till/store/proof"
)

// auditSliceRows is how many audit rows one snapshot covers.
const auditSliceRows = 5_000

// AuditFilter selects rows of an audit log. Zero fields do not filter.
type AuditFilter struct {
	Subject till.ID
	From    till.Time // inclusive
	To      till.Time // inclusive
}

// EachAudit calls f with the audit rows of a client, or of till.House, oldest first, in short
// snapshots. Rows that are written meanwhile may be missing. It returns
// CodeClientNotFound.
func EachAudit(ctx context.Context, s *store.Store, client till.ID, filter AuditFilter, f func(a *store.AuditRow) error) error {
	var last, end int64
	err := s.View(ctx, func(tx *store.Tx) (err error) {
		if client != till.House {
			if _, err := tx.Client(ctx, client); err != nil {
				return err
			}
		}
		head, err := proof.Head(ctx, tx, client)
		if err != nil || head == nil {
			return err
		}
		end = head.LastAudit
		if !filter.To.IsZero() {
			if end, err = auditlog.CountBefore(ctx, tx, client, filter.To+1); err != nil {
				return err
			}
		}
		if !filter.From.IsZero() {
			last, err = auditlog.CountBefore(ctx, tx, client, filter.From)
		}
		return err
	})
	if err != nil {
		return err
	}
	for last < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		until := min(last+auditSliceRows, end)
		var rows []*store.AuditRow
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			if filter.Subject.IsZero() {
				rows, err = auditlog.Read(ctx, tx, client, last, int(until-last))
			} else {
				rows, err = auditlog.Of(ctx, tx, store.Ref{Client: client, ID: filter.Subject}, last, until)
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, a := range rows {
			if a.Sequence > until { // the log has a gap, which Verify reports
				break
			}
			if err := f(a); err != nil {
				return err
			}
		}
		last = until
	}
	return nil
}

// auditScanRows is how many rows of a log one page of it reads.
const auditScanRows = 20_000

// AuditPage is what a page of an audit log selects. Zero fields do not filter.
type AuditPage struct {
	Subject  till.ID // then only what others than the engine did to it
	From, To till.Time
	People   bool   // leaves the engine's own rows out
	Actor    string // a part of who
	Action   string // what the action begins with
	Before   int64  // rows below this sequence
}

// AuditRows is a page of an audit log, newest first.
type AuditRows struct {
	Rows   []*store.AuditRow
	Next   int64 // go on before it; 0: there is no more
	Sealed int64 // the chain covers the rows up to this one
	Last   int64 // the newest row
}

// ReadAudit reads a page of the audit log of a client, or of till.House. It reads
// a bounded part of the log, so a page may be short, or empty, and still
// have a next one.
func ReadAudit(ctx context.Context, tx *store.Tx, client till.ID, f AuditPage, limit int) (out AuditRows, err error) {
	head, err := proof.Head(ctx, tx, client)
	if err != nil || head == nil {
		return out, err
	}
	out.Last = head.LastAudit
	link, err := auditlog.LastLink(ctx, tx, client)
	if err != nil {
		return out, err
	}
	out.Sealed = link.Sequence
	if !f.Subject.IsZero() {
		out.Rows, err = auditlog.ActsOn(ctx, tx, store.Ref{Client: client, ID: f.Subject}, limit)
		return out, err
	}
	before := head.LastAudit + 1
	if f.Before > 0 {
		before = min(before, f.Before)
	}
	if !f.To.IsZero() {
		last, err := auditlog.CountBefore(ctx, tx, client, f.To+1)
		if err != nil {
			return out, err
		}
		before = min(before, last+1)
	}
	s := auditlog.AuditSearch{Before: before, Floor: max(1, before-auditScanRows), From: f.From, NoEngine: f.People, Actor: f.Actor, Action: f.Action}
	if out.Rows, err = auditlog.Down(ctx, tx, client, s, limit+1); err != nil {
		return out, err
	}
	switch {
	case len(out.Rows) > limit:
		out.Rows = out.Rows[:limit]
		out.Next = out.Rows[limit-1].Sequence
	case s.Floor > 1:
		out.Next = s.Floor
	}
	if out.Next > 0 && !f.From.IsZero() {
		// What is older than the range ends it, wherever the scan stopped.
		at, err := auditlog.At(ctx, tx, client, out.Next-1)
		if err != nil {
			return out, err
		}
		if at < f.From {
			out.Next = 0
		}
	}
	return out, nil
}
