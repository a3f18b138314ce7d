package money

import (
	"encoding/json"
	"fmt"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/ledger"
	"till/store"
)

// subjectObject is a payment or payout as a case shows it. The phone number is masked.
func subjectObject(name string, id till.ID, p store.Subject) cli.Object {
	return cli.Object{name, id, "status", p.Status, "resolution", p.Resolution.State, "value", p.Amount.Value(), "currency", p.Amount.Currency,
		"fee", cli.Minor(p.Fee), "method", p.Method, "country", p.Country, "phone", till.MaskPhone(p.Phone),
		"connection", p.Connection, "reference", cli.OrNull(p.Reference), "provider_reference", cli.OrNull(*p.ProviderReference),
		"failure_reason", cli.OrNull(*p.FailureReason), "created_at", p.CreatedAt, "updated_at", *p.UpdatedAt,
		"expires_at", p.ExpiresAt, "next_check_at", p.Resolution.NextCheckAt}
}

func printCaseDetail(c *cli.Call, f *books.CaseDetail) error {
	return c.Lines(caseDetailObject(f), func(row func(...any)) {
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
		row(string(p.Noun()), p.ID)
		subjectFieldRows(p.Subject(), row)
	}
	refundRows(f, row)
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

func caseDetailObject(f *books.CaseDetail) cli.Object {
	var payment, payout, endpoint any
	if p := f.Payment; p != nil {
		payment = subjectObject("payment_id", p.ID, p.Subject())
	}
	if p := f.Payout; p != nil {
		payout = subjectObject("payout_id", p.ID, p.Subject())
		if p.IsRefund() {
			payout = subjectObject("payout_id", p.ID, p.Subject()).With("payment_id", p.PaymentID)
		}
	}
	if f.Endpoint != nil {
		endpoint = json.RawMessage(append(f.Endpoint.AppendJSON(nil), '}'))
	}
	return CaseObject(f.Case).With("cause_stands", cli.OrNull(f.RemainingCause), "payment", payment, "payout", payout, "webhook_endpoint", endpoint,
		"attempts", cli.Objects(f.Attempts, attemptObject), "events", cli.Objects(f.Events, eventObject), "transactions", transactionsJSON(f.Transactions),
		"refunds", refundsObject(f.Refunds), "put_aside", f.Suspended, "audit", cli.Objects(f.Audit, auditObject), "other_cases", cli.Objects(f.Others, CaseObject))
}

func eventObject(e *store.EventRow) cli.Object {
	return cli.Object{"sequence", e.Sequence, "kind", e.Kind, "created_at", e.CreatedAt}
}

func transactionsJSON(all []*ledger.Transaction) []json.RawMessage {
	out := make([]json.RawMessage, len(all))
	for i, t := range all {
		out[i] = books.AppendTransaction(nil, t)
	}
	return out
}
