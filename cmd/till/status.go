package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/server"
	"till/store"
	"till/store/admin"
)

func newStatus() *cobra.Command {
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
	}
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		st, err := server.ReadStatus(c.Context(), c.Store, c.Database)
		if err != nil {
			return err
		}
		if err := printStatus(c, st); err != nil {
			return err
		}
		if len(st.Troubles()) > 0 {
			return cli.ErrProblems
		}
		return nil
	})
}

func printStatus(c *cli.Call, s *books.Status) error {
	return c.Show(server.StatusOut(s), func(w io.Writer) error {
		printPart(w, s, &s.Live)
		if s.Test.Clients > 0 {
			cli.PrintLine(w, "Test clients, whose money is none:")
			printPart(w, s, &s.Test)
		}
		cli.Printf(w, "verify     %s\n", verifiedText(s))
		if s.Unfilled {
			cli.PrintLine(w, "sums       are still being filled in by the server")
		}
		troubles := s.Troubles()
		if len(troubles) == 0 {
			_, err := cli.PrintLine(w, "All is well.")
			return err
		}
		for _, t := range troubles {
			cli.Printf(w, "trouble    %s: %s\n", t.Name, t.Text)
		}
		_, err := cli.PrintLine(w, troublesText(troubles))
		return err
	})
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
		cli.PrintLine(w, "operators  none was used yet")
	}
	for _, o := range p.Operators {
		text := string(o.State)
		if o.State != admin.Passing {
			text += fmt.Sprintf(" since %s, tried again %s", o.Since, o.RetryAt)
		}
		calls := o.Calls.Answered + o.Calls.Unanswered
		if calls > 0 {
			text += fmt.Sprintf(", %d of %d calls of the last minute answered, %d ms", o.Calls.Answered, calls, o.Calls.MeanLatency().Milliseconds())
		}
		if o.Case != "" {
			text += "; " + o.Case
		}
		cli.Printf(w, "operators  %s %s: %s\n", o.Connection, server.OperatorKind(o), text)
	}
	if len(p.Open) == 0 {
		cli.PrintLine(w, "open       nothing")
	}
	for _, o := range p.Open {
		cli.Printf(w, "open       %s; older than 5 minutes: %d, 1 hour: %d, 24 hours: %d\n", cli.Count(o.N, string(o.Kind), string(o.Kind)+"s"), o.FiveMinutes, o.Hour, o.Day)
	}
	cli.Printf(w, "cases      %s\n", casesText(s.At, p.Cases))
	cli.Printf(w, "suspense   %s\n", suspenseText(p.Suspense))
	b := &p.Webhooks
	text := fmt.Sprintf("%s, %s behind, %d to be sent again", cli.Count(b.Endpoints, "endpoint", "endpoints"), cli.Count(b.Behind, "event", "events"), b.Retries)
	if b.Failing > 0 {
		text += fmt.Sprintf("; nothing reaches %d, the longest since %s", b.Failing, b.Since)
	}
	if b.Disabled > 0 {
		text += fmt.Sprintf("; %d disabled because nothing reached them", b.Disabled)
	}
	cli.Printf(w, "webhooks   %s\n", text)
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
		parts = append(parts, fmt.Sprintf("%s %s of %s", cli.Major(a.Minor, a.Currency), a.Currency, cli.Count(a.Payments, "payment", "payments")))
	}
	return strings.Join(parts, ", ")
}

func verifiedText(s *books.Status) string {
	v := s.Verified
	switch {
	case v == nil:
		return "never ran; run 'till verify'"
	case v.Problems > 0:
		return fmt.Sprintf("found %s at %s", cli.Count(v.Problems, "problem", "problems"), v.At)
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
