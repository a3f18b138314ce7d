package server

import (
	"strconv"

	"till"
	"till/books"
)

// StatusJSON is the status as 'till status --json' prints it and the admin address serves it.
type StatusJSON struct {
	At       string        `json:"at"`
	Well     bool          `json:"well"`
	Troubles []string      `json:"troubles"`
	PartJSON               // live money
	Test     PartJSON      `json:"test"`
	Held     bool          `json:"payouts_held"` // those of all clients
	Verified *verifiedJSON `json:"last_verify"`  // null: never
	Unfilled bool          `json:"sums_unfilled"`
}

// PartJSON is what clients of one mode have.
type PartJSON struct {
	Operators []operatorStatusJSON `json:"operators"`
	Open      []openJSON           `json:"open"`
	Unknown   *string              `json:"unknown_since"` // when the operator was first asked about what has been open the longest
	Cases     []openCasesJSON      `json:"cases"`
	Strays    int64                `json:"strays_open"`
	Suspense  []suspenseJSON       `json:"suspense"`
	Webhooks  backlogJSON          `json:"webhooks"`
}

type operatorStatusJSON struct {
	Connection   string  `json:"connection"`
	Kind         string  `json:"kind"`  // payments or payouts
	State        string  `json:"state"` // passing, stopped, probing
	Since        *string `json:"since"`
	RetryAt      *string `json:"retry_at"`
	Answered     int64   `json:"answered"` // in the last minute
	Unanswered   int64   `json:"unanswered"`
	Milliseconds int64   `json:"milliseconds"` // a call that was answered, on average
	Case         *string `json:"case"`
}

type openJSON struct {
	Kind        string `json:"kind"`
	All         int64  `json:"all"`
	FiveMinutes int64  `json:"older_than_5_minutes"`
	Hour        int64  `json:"older_than_1_hour"`
	Day         int64  `json:"older_than_24_hours"`
}

type openCasesJSON struct {
	Kind   string `json:"kind"`
	Count  int64  `json:"count"`
	Oldest string `json:"oldest"`
}

type suspenseJSON struct {
	Currency string `json:"currency"`
	Amount   string `json:"amount"` // in minor units
	Payments int64  `json:"payments"`
}

type backlogJSON struct {
	Endpoints int64   `json:"endpoints"`
	Behind    int64   `json:"events_behind"`
	Retries   int64   `json:"events_to_send_again"`
	Failing   int64   `json:"failing"`
	Since     *string `json:"failing_since"`
	Disabled  int64   `json:"disabled"`
}

type verifiedJSON struct {
	At         string `json:"at"`
	Problems   int64  `json:"problems"`
	KeyChecked bool   `json:"audit_key_checked"`
}

// StatusOut puts a status into JSON.
func StatusOut(s *books.Status) StatusJSON {
	out := StatusJSON{At: s.At.String(), Troubles: []string{}, PartJSON: partOut(&s.Live), Test: partOut(&s.Test), Held: s.AllHeld(), Unfilled: s.Unfilled}
	for _, t := range s.Troubles() {
		out.Troubles = append(out.Troubles, string(t.Name))
	}
	out.Well = len(out.Troubles) == 0
	if v := s.Verified; v != nil {
		out.Verified = &verifiedJSON{v.At.String(), v.Problems, v.KeyChecked}
	}
	return out
}

func partOut(p *books.Part) PartJSON {
	b := p.Webhooks
	out := PartJSON{Operators: []operatorStatusJSON{}, Open: []openJSON{}, Cases: []openCasesJSON{}, Suspense: []suspenseJSON{},
		Unknown: timeOrNull(p.UnknownSince), Strays: p.OpenStrays(),
		Webhooks: backlogJSON{b.Endpoints, b.Behind, b.Retries, b.Failing, timeOrNull(b.Since), b.Disabled}}
	for _, o := range p.Operators {
		out.Operators = append(out.Operators, operatorStatusJSON{o.Connection, OperatorKind(o), string(o.State), timeOrNull(o.Since), timeOrNull(o.RetryAt),
			o.Calls.Answered, o.Calls.Unanswered, o.Calls.MeanLatency().Milliseconds(), textOrNull(o.Case)})
	}
	for _, o := range p.Open {
		out.Open = append(out.Open, openJSON{string(o.Kind), o.N, o.FiveMinutes, o.Hour, o.Day})
	}
	for _, c := range p.Cases {
		out.Cases = append(out.Cases, openCasesJSON{c.Kind, c.Count, c.Oldest.String()})
	}
	for _, a := range p.Suspense {
		out.Suspense = append(out.Suspense, suspenseJSON{a.Currency, strconv.FormatInt(a.Minor, 10), a.Payments})
	}
	return out
}

// OperatorKind says what a connection is judged for.
func OperatorKind(o *books.OperatorStatus) string {
	if o.Payouts {
		return "payouts"
	}
	return "payments"
}

// timeOrNull is a time in JSON, null if it is unset.
func timeOrNull(t till.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.String()
	return &s
}

// textOrNull is a text in JSON, null if it is empty.
func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
