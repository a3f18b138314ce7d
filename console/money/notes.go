package money

import (
	"context"
	"errors"
	"net/http"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/people"
	"till/store"
	"till/store/auditlog"
	"till/story"
)

// notePage is where a note on a payment or payout is written.
type notePage struct {
	*shell.Frame
	Kind   string // "payments", "payouts" or "refunds"
	Back   string
	Amount till.Money
	State  shell.Chip
	Notes  []*noteLine
	Full   bool
	Key    string // of the act: posted twice, it is one note
	Text   string // as it was typed
	Wrong  string
}

type noteLine struct {
	At        till.Time
	Who, Text string
}

// paymentNote is GET and POST /c/{client}/payments/{id}/note.
func (v *visit) paymentNote() error { return v.note(till.SubjectPayment, "payments") }

// payoutNote is GET and POST /c/{client}/payouts/{id}/note.
func (v *visit) payoutNote() error {
	if !v.May(people.WalletsSee) {
		return &people.Refusal{Code: people.NotAllowed, Need: people.WalletsSee}
	}
	return v.note(till.SubjectPayout, "payouts")
}

// refundNote is GET and POST /c/{client}/refunds/{id}/note.
func (v *visit) refundNote() error { return v.note(till.SubjectPayout, "refunds") }

func (v *visit) note(kind till.SubjectKind, list string) error {
	ref, err := v.Ref("id")
	if err != nil {
		return err
	}
	if ref.ID.Time() < v.Earliest() {
		return shell.ErrNoPage
	}
	p := &notePage{Kind: list, Back: v.ClientPath("/" + list + "/" + ref.ID.String()), Key: till.NewID(v.Now).String()}
	if v.R.Method == http.MethodPost {
		done, err := v.saveNote(p, kind, ref)
		if done || err != nil {
			return err
		}
	}
	if err := v.readNotes(p, kind, ref); err != nil {
		return err
	}
	return v.Page("note", p)
}

// saveNote writes the note and leads back, or says what is wrong with it.
func (v *visit) saveNote(p *notePage, kind till.SubjectKind, ref store.Ref) (done bool, err error) {
	t := v.Words.T
	p.Text = v.R.PostFormValue("text")
	id, err := till.ParseID(v.R.PostFormValue("key"))
	if err == nil {
		p.Key = id.String()
	} else {
		id = till.NewID(v.Now)
	}
	if _, err := story.CleanNote(p.Text); err != nil {
		p.Wrong = t("note.wrong", "n", story.MaxNoteChars)
		return false, nil
	}
	err = story.AddNote(v.R.Context(), v.Console.Store, kind, auditlog.Note{Ref: ref, ID: id, Actor: v.Session.Actor(), Text: p.Text})
	var e *till.Error
	switch {
	case err == nil:
		return true, v.Redirect(p.Back + "?done=note")
	case errors.As(err, &e) && e.Code == till.CodeKeyReused:
		p.Wrong, p.Key = t("note.used"), till.NewID(v.Now).String()
		return false, nil
	case errors.As(err, &e) && e.Code == till.CodeValidationFailed:
		p.Wrong = t("note.full", "n", story.MaxNotes)
		return false, nil
	}
	return false, err
}

// readNotes reads what the note is about, and the notes that are there.
func (v *visit) readNotes(p *notePage, kind till.SubjectKind, ref store.Ref) error {
	return v.View(func(ctx context.Context, tx *store.Tx) error {
		if kind == till.SubjectPayout {
			row, err := tx.Payout(ctx, ref)
			if err != nil {
				return err
			}
			if row.IsRefund() != (p.Kind == "refunds") {
				return shell.ErrNoPage
			}
			p.Amount = row.Amount
			p.State, _ = subject.PayoutChip(v.Visit, row)
		} else {
			row, err := tx.Payment(ctx, ref)
			if err != nil {
				return err
			}
			p.Amount = row.Amount
			p.State, _ = subject.PaymentChip(v.Visit, row)
		}
		p.Frame = v.Frame(v.Words.T("note.title")+" "+look.Money(v.Words.Lang(), p.Amount), "menu."+p.Kind)
		notes, err := auditlog.Notes(ctx, tx, ref, story.MaxNotes)
		for _, n := range notes {
			p.Notes = append(p.Notes, &noteLine{n.CreatedAt, till.NameOfActor(n.Actor), n.Text})
		}
		p.Full = len(notes) >= story.MaxNotes
		return err
	})
}

// Most is how many characters a note may have.
func (p *notePage) Most() int { return story.MaxNoteChars }

// MostNotes is how many notes there may be.
func (p *notePage) MostNotes() int { return story.MaxNotes }
