package books

import (
	"context"

	"till"
	"till/store"
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
		head, err := tx.Head(ctx, client)
		if err != nil || head == nil {
			return err
		}
		end = head.LastAudit
		if !filter.To.IsZero() {
			if end, err = tx.AuditBefore(ctx, client, filter.To+1); err != nil {
				return err
			}
		}
		if !filter.From.IsZero() {
			last, err = tx.AuditBefore(ctx, client, filter.From)
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
				rows, err = tx.Audit(ctx, client, last, int(until-last))
			} else {
				rows, err = tx.AuditOf(ctx, store.Ref{Client: client, ID: filter.Subject}, last, until)
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
