package money

import (
	"encoding/json"
	"fmt"
	"slices"

	"till/books"
	"till/cmd/till/internal/cli"
	"till/store"
)

// attemptObject is a call to an operator.
func attemptObject(a *store.Attempt) cli.Object {
	return cli.Object{"kind", a.Kind, "connection", a.Connection, "submission_reference", a.Reference, "outcome", a.Outcome, "provider_code", a.Code,
		"detail", a.Detail, "started_at", a.StartedAt, "ended_at", a.EndedAt, "repeats", a.Repeats}
}

// submissionReferences returns the reference that was sent to the operator for
// a payment or payout; none before the first send.
func submissionReferences(attempts []*store.Attempt) (out []string) {
	for _, a := range attempts {
		if text := a.Reference.String(); a.Kind == store.AttemptSubmit && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// printSubject prints a payment or payout with its money and its calls.
func printSubject(c *cli.Call, f *books.CaseDetail) error {
	return c.Lines(subjectDetailObject(f), func(row func(...any)) {
		var p store.Subject
		if f.Payment != nil {
			p = f.Payment.Subject()
			row("payment", f.SubjectID)
			row("client", f.ClientID)
			subjectFieldRows(p, row)
			row("expires", p.ExpiresAt)
		} else {
			p = f.Payout.Subject()
			row(string(f.Payout.Noun()), f.SubjectID)
			row("client", f.ClientID)
			subjectFieldRows(p, row)
			row("may be sent until", p.ExpiresAt)
			if !f.HeldAt.IsZero() {
				row("held", "since "+f.HeldAt.String()+"; see 'till payouts held'")
			}
		}
		refundRows(f, row)
		historyRows(f, row)
		for _, c := range f.Others {
			row("case", fmt.Sprintf("%s %s: %s", c.ID, c.Kind, c.Detail))
		}
	})
}

// historyRows are the references, the money and the calls of a payment or
// payout.
func historyRows(f *books.CaseDetail, row func(...any)) {
	if !f.Suspended.IsZero() {
		row("operator says", fmt.Sprintf("%s %s (minor units), put aside: it is not what was asked for", f.Suspended.Value(), f.Suspended.Currency))
	}
	for _, reference := range submissionReferences(f.Attempts) {
		row("sent as", reference)
	}
	if f.Handle != "" {
		row("operator's id", f.Handle)
	}
	for _, t := range f.Transactions {
		row("money", fmt.Sprintf("%s  %s %s %s %s, then %d", t.CreatedAt, t.Type, t.Direction, t.Amount.Value(), t.Amount.Currency, t.BalanceAfter))
	}
	for _, o := range f.Owed {
		row("owed", fmt.Sprintf("%s  %s: %s %s that the wallet lacked", o.CreatedAt, o.Kind, o.Amount.Value(), o.Amount.Currency))
	}
	if len(f.Attempts) > 0 && f.Attempts[0].N > 1 {
		row("call", fmt.Sprintf("%s before these are not shown", cli.Count(int64(f.Attempts[0].N-1), "different answer", "different answers")))
	}
	for _, a := range f.Attempts {
		row("call", attemptLine(a))
	}
}

// attemptLine is a call, and how often it was repeated with the same answer.
func attemptLine(a *store.Attempt) string {
	outcome := a.Outcome
	if outcome == "" {
		outcome = "under way, or its answer was never recorded"
	}
	line := fmt.Sprintf("%s  %s to %s: %s", a.StartedAt, a.Kind, a.Connection, outcome)
	for _, text := range []string{a.Code, a.Detail} {
		if text != "" {
			line += " " + text
		}
	}
	if a.Repeats > 1 { // the first counts
		line += fmt.Sprintf(", %d times until %s", a.Repeats, a.LastAt)
	}
	return line
}

func subjectDetailObject(f *books.CaseDetail) cli.Object {
	var sent any
	if all := submissionReferences(f.Attempts); len(all) > 0 {
		sent = all[len(all)-1]
	}
	out := cli.Object{"attempts", cli.Objects(f.Attempts, attemptObject), "cases", cli.Objects(f.Others, CaseObject), "client_id", f.ClientID, "held_at", f.HeldAt,
		"operator_request_id", cli.OrNull(f.Handle), "owed", cli.Objects(f.Owed, owingObject)}
	if f.Payment != nil {
		out = out.With("payment", json.RawMessage(f.Payment.AppendJSON(nil)))
	} else {
		out = out.With(string(f.Payout.Noun()), json.RawMessage(f.Payout.AppendJSON(nil)))
		if f.Payout.IsRefund() {
			out = out.With("road", string(f.Payout.Road))
		}
	}
	return out.With("put_aside", f.Suspended, "refunds", refundsObject(f.Refunds), "submission_reference", sent, "transactions", transactionsJSON(f.Transactions))
}

func owingObject(o store.Owing) cli.Object {
	return cli.Object{"type", o.Kind, "amount", o.Amount, "created_at", o.CreatedAt}
}
