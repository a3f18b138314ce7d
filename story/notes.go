package story

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"till"
	"till/store"
	"till/store/auditlog"
)

// Limits of notes.
const (
	MaxNotes     = 20  // on one payment or payout
	MaxNoteChars = 500 // of one
	maxNoteLines = 10
)

// ActNote is the act of writing a note, in the audit log.
const ActNote = "note.add"

// CleanNote returns a note's text as it is kept, or CodeValidationFailed.
func CleanNote(text string) (string, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	strange := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	if text == "" || !utf8.ValidString(text) || utf8.RuneCountInString(text) > MaxNoteChars || strings.Count(text, "\n") >= maxNoteLines || strings.ContainsFunc(text, strange) {
		return "", till.Errorf(till.CodeValidationFailed, "a note has 1 to %d printable characters in at most %d lines", MaxNoteChars, maxNoteLines)
	}
	return text, nil
}

// AddNote writes a note on a payment or payout, once per id. The audit log has
// who wrote it and the text's SHA-256; a person may type a phone number, which
// must not be there. It returns CodePaymentNotFound or CodePayoutNotFound,
// CodeKeyReused if the id is another note's, and CodeValidationFailed if the text
// is not one, or if there are MaxNotes.
func AddNote(ctx context.Context, s *store.Store, kind till.SubjectKind, n auditlog.Note) error {
	text, err := CleanNote(n.Text)
	if err != nil {
		return err
	}
	n.Text = text
	_, err = store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, _ bool) error { return addNote(ctx, tx, kind, &n) })
	return err
}

func addNote(ctx context.Context, tx *store.Tx, kind till.SubjectKind, n *auditlog.Note) error {
	heads, err := tx.LockHeads(ctx, []till.ID{n.Ref.Client})
	if err != nil {
		return err
	}
	if kind == till.SubjectPayout {
		_, err = tx.Payout(ctx, n.Ref)
	} else {
		_, err = tx.Payment(ctx, n.Ref)
	}
	if err != nil {
		return err
	}
	notes, err := auditlog.Notes(ctx, tx, n.Ref, MaxNotes)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(notes, func(o *auditlog.Note) bool { return o.ID == n.ID }); i >= 0 {
		if notes[i].Text != n.Text || !till.SameActor(notes[i].Actor, n.Actor) {
			return till.Errorf(till.CodeKeyReused, "the id %s is another note's", n.ID)
		}
		return nil
	}
	if len(notes) >= MaxNotes {
		return till.Errorf(till.CodeValidationFailed, "there are %d notes already, which is the limit", MaxNotes)
	}
	head := heads[n.Ref.Client]
	n.CreatedAt = head.NextTime()
	if err := auditlog.InsertNote(ctx, tx, n); err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(n.Text))
	row := &store.AuditRow{ClientID: n.Ref.Client, Sequence: head.NextAudit(), At: n.CreatedAt, Actor: n.Actor, Action: ActNote, SubjectID: n.Ref.ID,
		Detail: fmt.Sprintf("note %s of %d characters", n.ID, utf8.RuneCountInString(n.Text)), Evidence: digest[:]}
	if err := tx.InsertAudit(ctx, []*store.AuditRow{row}); err != nil {
		return err
	}
	return tx.SaveHeads(ctx, heads)
}
