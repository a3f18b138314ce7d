package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"till/books"
	"till/cmd/till/internal/cli"
	"till/store"
)

// attemptJSON is a call to an operator as the command prints it.
type attemptJSON struct {
	Kind                string  `json:"kind"`
	Connection          string  `json:"connection"`
	SubmissionReference string  `json:"submission_reference"`
	Outcome             string  `json:"outcome"`
	ProviderCode        string  `json:"provider_code"`
	Detail              string  `json:"detail"`
	StartedAt           string  `json:"started_at"`
	EndedAt             *string `json:"ended_at"`
	Repeats             int     `json:"repeats"`
}

func attemptsOut(attempts []*store.Attempt) []attemptJSON {
	out := make([]attemptJSON, len(attempts))
	for i, a := range attempts {
		out[i] = attemptJSON{a.Kind, a.Connection, a.Reference.String(), a.Outcome, a.Code, a.Detail,
			a.StartedAt.String(), cli.TimeOrNull(a.EndedAt), a.Repeats}
	}
	return out
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

type owingJSON struct {
	Kind      string     `json:"type"`
	Amount    *cli.Money `json:"amount"`
	CreatedAt string     `json:"created_at"`
}

// printSubject prints a payment or payout with its money and its calls.
func printSubject(w io.Writer, f *books.CaseDetail, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w, subjectDetailOut(f))
	}
	return cli.Table(w, func(row func(...any)) {
		var p store.Subject
		if f.Payment != nil {
			p = f.Payment.Subject()
			row("payment", f.SubjectID)
			row("client", f.ClientID)
			subjectFieldRows(p, row)
			row("expires", p.ExpiresAt)
		} else {
			p = f.Payout.Subject()
			row("payout", f.SubjectID)
			row("client", f.ClientID)
			subjectFieldRows(p, row)
			row("may be sent until", p.ExpiresAt)
			if !f.HeldAt.IsZero() {
				row("held", "since "+f.HeldAt.String()+"; see 'till payouts held'")
			}
		}
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

func subjectDetailOut(f *books.CaseDetail) map[string]any {
	transactions, owed, cases := []json.RawMessage{}, []owingJSON{}, []caseJSON{}
	for _, t := range f.Transactions {
		transactions = append(transactions, transactionOut(t))
	}
	for _, o := range f.Owed {
		owed = append(owed, owingJSON{string(o.Kind), cli.MoneyOrNull(o.Amount), o.CreatedAt.String()})
	}
	for _, c := range f.Others {
		cases = append(cases, caseOut(c))
	}
	var sent *string
	if all := submissionReferences(f.Attempts); len(all) > 0 {
		sent = &all[len(all)-1]
	}
	out := map[string]any{
		"client_id": f.ClientID.String(), "submission_reference": sent, "operator_request_id": cli.TextOrNull(f.Handle), "put_aside": cli.MoneyOrNull(f.Suspended),
		"transactions": transactions, "owed": owed, "cases": cases, "attempts": attemptsOut(f.Attempts),
		"held_at": cli.TimeOrNull(f.HeldAt),
	}
	if f.Payment != nil {
		out["payment"] = json.RawMessage(f.Payment.AppendJSON(nil))
	} else {
		out["payout"] = json.RawMessage(f.Payout.AppendJSON(nil))
	}
	return out
}
