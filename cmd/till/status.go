package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/server"
	"till/store"
)

func newStatus() *cobra.Command {
	var database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say on one screen whether everything is well",
		Long: `Say how the operators do, what is open and for how long, which cases wait for a
person, what is put aside, how far webhooks are behind and when the books were last
proven. Use it when you come to work, or from a monitor: the exit code is 0 if all is
well, 1 if a person has to look at something, 2 if the database could not be read.`,
		Example: `  till status
  till status --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), database, func(s *store.Store) error {
				st, err := server.ReadStatus(cmd.Context(), s, database)
				if err != nil {
					return err
				}
				if err := printStatus(cmd.OutOrStdout(), st, asJSON); err != nil {
					return err
				}
				if len(st.Troubles()) > 0 {
					return errProblems
				}
				return nil
			})
		},
	}
	addDatabaseFlag(cmd, &database)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// statusJSON is the status as the command prints it.
type statusJSON struct {
	At       string        `json:"at"`
	Well     bool          `json:"well"`
	Troubles []string      `json:"troubles"`
	partJSON               // live money
	Test     partJSON      `json:"test"`
	Verified *verifiedJSON `json:"last_verify"` // null: never
	Unfilled bool          `json:"sums_unfilled"`
}

// partJSON is what clients of one mode have.
type partJSON struct {
	Operators []operatorStatusJSON `json:"operators"`
	Open      []openJSON           `json:"open"`
	Cases     []openCasesJSON      `json:"cases"`
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

func statusOut(s *books.Status) statusJSON {
	out := statusJSON{At: s.At.String(), Troubles: []string{}, partJSON: partOut(&s.Live), Test: partOut(&s.Test), Unfilled: s.Unfilled}
	for _, t := range s.Troubles() {
		out.Troubles = append(out.Troubles, string(t.Name))
	}
	out.Well = len(out.Troubles) == 0
	if v := s.Verified; v != nil {
		out.Verified = &verifiedJSON{v.At.String(), v.Problems, v.KeyChecked}
	}
	return out
}

func partOut(p *books.Part) partJSON {
	b := p.Webhooks
	out := partJSON{Operators: []operatorStatusJSON{}, Open: []openJSON{}, Cases: []openCasesJSON{}, Suspense: []suspenseJSON{},
		Webhooks: backlogJSON{b.Endpoints, b.Behind, b.Retries, b.Failing, timeOrNull(b.Since), b.Disabled}}
	for _, o := range p.Operators {
		out.Operators = append(out.Operators, operatorStatusJSON{o.Connection, kindOf(o), string(o.State), timeOrNull(o.Since), timeOrNull(o.RetryAt),
			o.Calls.Answered, o.Calls.Unanswered, o.Calls.MeanLatency().Milliseconds(), textOrNull(o.Case)})
	}
	for _, o := range p.Open {
		out.Open = append(out.Open, openJSON{string(o.Kind), o.N, o.FiveMinutes, o.Hour, o.Day})
	}
	for _, c := range p.Cases {
		out.Cases = append(out.Cases, openCasesJSON{c.Kind, c.Count, c.Oldest.String()})
	}
	for _, a := range p.Suspense {
		out.Suspense = append(out.Suspense, suspenseJSON{a.Currency, minor(a.Minor), a.Payments})
	}
	return out
}

func kindOf(o *books.OperatorStatus) string {
	if o.Payouts {
		return "payouts"
	}
	return "payments"
}

func printStatus(w io.Writer, s *books.Status, asJSON bool) error {
	if asJSON {
		return printJSON(w, statusOut(s))
	}
	printPart(w, s, &s.Live)
	if s.Test.Clients > 0 {
		printLine(w, "Test clients, whose money is none:")
		printPart(w, s, &s.Test)
	}
	printf(w, "verify     %s\n", verifiedText(s))
	if s.Unfilled {
		printLine(w, "sums       are still being filled in by the server")
	}
	troubles := s.Troubles()
	if len(troubles) == 0 {
		_, err := printLine(w, "All is well.")
		return err
	}
	for _, t := range troubles {
		printf(w, "trouble    %s: %s\n", t.Name, t.Text)
	}
	_, err := printLine(w, troublesText(troubles))
	return err
}

func troublesText(all []books.Trouble) string {
	var names []string
	for _, t := range all {
		names = append(names, string(t.Name))
	}
	return "A person has to look: " + strings.Join(names, ", ") + "."
}

func printPart(w io.Writer, s *books.Status, p *books.Part) {
	if len(p.Operators) == 0 {
		printLine(w, "operators  none was used yet")
	}
	for _, o := range p.Operators {
		text := string(o.State)
		if o.State != store.Passing {
			text += fmt.Sprintf(" since %s, tried again %s", o.Since, o.RetryAt)
		}
		calls := o.Calls.Answered + o.Calls.Unanswered
		if calls > 0 {
			text += fmt.Sprintf(", %d of %d calls of the last minute answered, %d ms", o.Calls.Answered, calls, o.Calls.MeanLatency().Milliseconds())
		}
		if o.Case != "" {
			text += "; " + o.Case
		}
		printf(w, "operators  %s %s: %s\n", o.Connection, kindOf(o), text)
	}
	if len(p.Open) == 0 {
		printLine(w, "open       nothing")
	}
	for _, o := range p.Open {
		printf(w, "open       %s; older than 5 minutes: %d, 1 hour: %d, 24 hours: %d\n", count(o.N, string(o.Kind), string(o.Kind)+"s"), o.FiveMinutes, o.Hour, o.Day)
	}
	printf(w, "cases      %s\n", casesText(s.At, p.Cases))
	printf(w, "suspense   %s\n", suspenseText(p.Suspense))
	b := &p.Webhooks
	text := fmt.Sprintf("%s, %s behind, %d to be sent again", count(b.Endpoints, "endpoint", "endpoints"), count(b.Behind, "event", "events"), b.Retries)
	if b.Failing > 0 {
		text += fmt.Sprintf("; nothing reaches %d, the longest since %s", b.Failing, b.Since)
	}
	if b.Disabled > 0 {
		text += fmt.Sprintf("; %d disabled because nothing reached them", b.Disabled)
	}
	printf(w, "webhooks   %s\n", text)
}

func casesText(now till.Time, cases []store.OpenKind) string {
	if len(cases) == 0 {
		return "none is open"
	}
	var parts []string
	for _, c := range cases {
		parts = append(parts, fmt.Sprintf("%d %s (oldest %s)", c.Count, c.Kind, ago(now, c.Oldest)))
	}
	return strings.Join(parts, ", ")
}

func suspenseText(aside []store.Aside) string {
	if len(aside) == 0 {
		return "no money is put aside"
	}
	var parts []string
	for _, a := range aside {
		parts = append(parts, fmt.Sprintf("%s %s of %s", major(a.Minor, a.Currency), a.Currency, count(a.Payments, "payment", "payments")))
	}
	return strings.Join(parts, ", ")
}

func verifiedText(s *books.Status) string {
	v := s.Verified
	switch {
	case v == nil:
		return "never ran; run 'till verify'"
	case v.Problems > 0:
		return fmt.Sprintf("found %s at %s", count(v.Problems, "problem", "problems"), v.At)
	}
	return fmt.Sprintf("the books were right at %s, %s ago", v.At, ago(s.At, v.At))
}

// ago returns how long ago something was, in its largest unit.
func ago(now, then till.Time) string {
	d := now.Sub(then)
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	return fmt.Sprintf("%d minutes", d/time.Minute)
}
