package engine

import (
	"till"
	"till/store"
)

// LostStep returns the step of a row that is made again after it was lost with a database,
// and the attempt that stands for what may have been sent.
func LostStep(kind till.SubjectKind, row store.Subject, keys Keys, now till.Time) (*store.Step, *store.Attempt) {
	s := &store.Step{ClientID: row.Ref.Client, SubjectID: row.Ref.ID, Kind: kind}
	MarkRestored(s, row.Connection, now)
	return s, RestoredSend(s, row, keys)
}

// RestoredSend returns the attempt of a step that counts as sent since a restore, as a claim
// writes it: callbacks and statements find the row by its reference.
func RestoredSend(s *store.Step, row store.Subject, keys Keys) *store.Attempt {
	return &store.Attempt{ClientID: s.ClientID, SubjectID: s.SubjectID, Connection: row.Connection,
		Reference: keys.Reference(s.ClientID, row.IdempotencyKey), StartedAt: s.SendStartedAt, First: true, LookupKind: s.Kind}
}

// LostAudit returns the audit row of a row that is made again. Its time is that of the row's
// first event, so that verify knows why that is not the row's own.
func LostAudit(kind till.SubjectKind, row store.Subject, sequence int64, by string) *store.AuditRow {
	return &store.AuditRow{ClientID: row.Ref.Client, Sequence: sequence, At: *row.UpdatedAt, SubjectID: row.Ref.ID, Actor: by,
		Action: RemadeAction(kind), Detail: "made again from the journal, as it was created at " + row.CreatedAt.String()}
}

// The acts of making a lost row again, for the audit log.
const (
	ActRemakePayment = "payment.remake"
	ActRemakePayout  = "payout.remake"
)

// RemadeAction returns the audit action of a row that was made again.
func RemadeAction(kind till.SubjectKind) string {
	if kind == till.SubjectPayout {
		return ActRemakePayout
	}
	return ActRemakePayment
}
