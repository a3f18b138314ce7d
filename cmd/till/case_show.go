package main

import (
	"encoding/json"
	"fmt"
	"io"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/ledger"
	"till/store"
)

// caseDetailJSON is a case with its evidence as the command prints it. Phone numbers
// are masked.
type caseDetailJSON struct {
	caseJSON
	Stands       *string           `json:"cause_stands"`
	Payment      *subjectJSON      `json:"payment"`
	Payout       *subjectJSON      `json:"payout"`
	Endpoint     json.RawMessage   `json:"webhook_endpoint"`
	Attempts     []attemptJSON     `json:"attempts"`
	Events       []eventJSON       `json:"events"`
	Transactions []json.RawMessage `json:"transactions"`
	Aside        *cli.Money        `json:"put_aside"`
	Audit        []auditJSON       `json:"audit"`
	Others       []caseJSON        `json:"other_cases"`
}

// subjectJSON is a payment or payout as a case shows it.
type subjectJSON struct {
	PaymentID         string  `json:"payment_id,omitempty"`
	PayoutID          string  `json:"payout_id,omitempty"`
	Status            string  `json:"status"`
	Resolution        string  `json:"resolution"`
	Value             string  `json:"value"`
	Currency          string  `json:"currency"`
	Fee               string  `json:"fee"`
	Method            string  `json:"method"`
	Country           string  `json:"country"`
	Phone             string  `json:"phone"`
	Connection        string  `json:"connection"`
	Reference         *string `json:"reference"`
	ProviderReference *string `json:"provider_reference"`
	FailureReason     *string `json:"failure_reason"`
	CreatedAt         string  `json:"created_at"`
	UpdatedAt         string  `json:"updated_at"`
	ExpiresAt         string  `json:"expires_at"`
	NextCheckAt       *string `json:"next_check_at"`
}

type eventJSON struct {
	Sequence  int64  `json:"sequence"`
	Kind      string `json:"kind"`
	CreatedAt string `json:"created_at"`
}

func paymentOut(p *store.PaymentRow) *subjectJSON {
	if p == nil {
		return nil
	}
	out := subjectOut(p.Subject())
	out.PaymentID = p.ID.String()
	return out
}

func payoutOut(p *store.PayoutRow) *subjectJSON {
	if p == nil {
		return nil
	}
	out := subjectOut(p.Subject())
	out.PayoutID = p.ID.String()
	return out
}

func subjectOut(p store.Subject) *subjectJSON {
	return &subjectJSON{
		Status: p.Status, Resolution: string(p.Resolution.State), Value: p.Amount.Value(), Currency: p.Amount.Currency,
		Fee: till.Money{Minor: p.Fee, Currency: p.Amount.Currency}.Value(), Method: p.Method, Country: p.Country, Phone: till.MaskPhone(p.Phone),
		Connection: p.Connection, Reference: cli.TextOrNull(p.Reference), ProviderReference: cli.TextOrNull(*p.ProviderReference),
		FailureReason: cli.TextOrNull(string(*p.FailureReason)), CreatedAt: p.CreatedAt.String(), UpdatedAt: p.UpdatedAt.String(),
		ExpiresAt: p.ExpiresAt.String(), NextCheckAt: cli.TimeOrNull(p.Resolution.NextCheckAt),
	}
}

func printCaseDetail(w io.Writer, f *books.CaseDetail, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w, caseDetailOut(f))
	}
	return cli.Table(w, func(row func(...any)) {
		row("case", f.ID)
		row("client", f.ClientID)
		row("kind", f.Kind)
		row("what", f.Detail)
		row("opened", f.OpenedAt)
		if !f.ClosedAt.IsZero() {
			row("closed", fmt.Sprintf("%s by %s: %s %s", f.ClosedAt, f.ClosedBy, f.Reason, cli.Digest(f.Evidence)))
		}
		if f.RemainingCause != "" {
			row("stands", f.RemainingCause)
		}
		subjectRows(f, row)
		historyRows(f, row)
		for _, e := range f.Events {
			row("event", fmt.Sprintf("%s  %d %s", e.CreatedAt, e.Sequence, e.Kind))
		}
		for _, a := range f.Audit {
			row("audit", fmt.Sprintf("%s  %d %s: %s %s %s", a.At, a.Sequence, a.Actor, a.Action, a.Detail, cli.Digest(a.Evidence)))
		}
		for _, c := range f.Others {
			row("also", fmt.Sprintf("%s  %s: %s", c.ID, c.Kind, c.Detail))
		}
	})
}

func subjectRows(f *books.CaseDetail, row func(...any)) {
	if p := f.Payment; p != nil {
		row("payment", p.ID)
		subjectFieldRows(p.Subject(), row)
	}
	if p := f.Payout; p != nil {
		row("payout", p.ID)
		subjectFieldRows(p.Subject(), row)
	}
	if e := f.Endpoint; e != nil {
		row("endpoint", e.ID)
		row("url", e.URL)
		row("enabled", e.Enabled)
		row("failing since", cli.TimeOr(e.FailingSince, "-"))
	}
}

func subjectFieldRows(p store.Subject, row func(...any)) {
	row("status", fmt.Sprintf("%s, %s", p.Status, p.Resolution.State))
	row("amount", fmt.Sprint(p.Amount.Minor, " ", p.Amount.Currency, " (minor units)"))
	row("fee", p.Fee)
	row("method", p.Method+" "+p.Country+" by "+p.Connection)
	row("phone", till.MaskPhone(p.Phone))
	row("reference", p.Reference)
	row("receipt", *p.ProviderReference)
	row("failure", *p.FailureReason)
	row("created", p.CreatedAt)
	row("updated", *p.UpdatedAt)
	row("next check", cli.TimeOr(p.Resolution.NextCheckAt, "-"))
}

func caseDetailOut(f *books.CaseDetail) *caseDetailJSON {
	out := &caseDetailJSON{
		caseJSON: caseOut(f.Case), Stands: cli.TextOrNull(f.RemainingCause), Payment: paymentOut(f.Payment), Payout: payoutOut(f.Payout), Attempts: attemptsOut(f.Attempts),
		Aside: cli.MoneyOrNull(f.Suspended), Events: []eventJSON{}, Transactions: []json.RawMessage{}, Audit: []auditJSON{}, Others: []caseJSON{},
	}
	if f.Endpoint != nil {
		out.Endpoint = append(f.Endpoint.AppendJSON(nil), '}')
	}
	for _, e := range f.Events {
		out.Events = append(out.Events, eventJSON{e.Sequence, string(e.Kind), e.CreatedAt.String()})
	}
	for _, t := range f.Transactions {
		out.Transactions = append(out.Transactions, transactionOut(t))
	}
	for _, a := range f.Audit {
		out.Audit = append(out.Audit, auditOut(a))
	}
	for _, c := range f.Others {
		out.Others = append(out.Others, caseOut(c))
	}
	return out
}

func transactionOut(t *ledger.Transaction) json.RawMessage { return books.AppendTransaction(nil, t) }
