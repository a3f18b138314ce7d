package money

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/checkout"
	"till/cmd/till/internal/cli"
	"till/engine"
	"till/reconcile"
	"till/store"
	"till/webhook"
)

func NewCases() *cobra.Command {
	var f store.CaseFilter
	var after string
	cmd := &cobra.Command{
		Use:     "cases",
		Aliases: []string{"case"},
		Short:   "List what a person has to look at",
		Long: `List the open cases: payments and payouts that the operator does not decide, money
that came late or in another amount, endpoints that do not answer, pages that
somebody reports. Use it every day. The case that has been open longest comes
first; with --closed or --all the newest.

'till payment resolve', 'till payout resolve' and 'till cases resolve' close a
case. It also closes when the operator decides after all. Problems of a whole
connection are printed first; with --json they are in 'till connections'.`,
		Example: `  till cases --kind late_money
  till cases show 0197a3d2-6c31-7e22-9d5f-1bac8d7e6f50`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	cli.AddAnyClient(cmd, &f.Client, "only this client, by its id (default all)")
	cli.AddChoice(cmd, &f.Kind, "kind", caseKinds, "only this kind, for example late_money (default all)")
	flags.BoolVar(&f.Closed, "closed", false, "list closed cases, newest first")
	flags.BoolVar(&f.All, "all", false, "list open and closed cases, newest first")
	cli.AddLimit(cmd, &f.Limit, books.MaxCases, "how many to list")
	flags.StringVar(&after, "after", "", "list from after this case: the last id of the page before")
	cmd.MarkFlagsMutuallyExclusive("closed", "all")
	cmd.AddCommand(newCaseShow(), newCaseResolve())
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		if err := findAfter(c, after, &f); err != nil {
			return err
		}
		cases, err := books.Cases(c.Context(), c.Store, f)
		if err != nil {
			return err
		}
		if len(cases) == f.Limit {
			c.Note("%s shown; those after: --after %s", cli.Count(f.Limit, "case is", "cases are"), cases[f.Limit-1].ID)
		}
		if err := reportOperatorCases(c); err != nil {
			return err
		}
		if err := reportStrays(c); err != nil {
			return err
		}
		return cli.List(c, cases, CaseObject, caseColumns)
	})
}

// caseKinds lists all kinds of cases, so that a typing mistake is an error and
// not an empty list.
var caseKinds = []string{
	engine.CaseOverdue, engine.CaseUnknownStatus, engine.CaseMismatch, engine.CaseContradiction, engine.CaseLateMoney, engine.CaseReversed,
	engine.CaseReceiptReused, engine.CaseHandleReused, engine.CaseWalletFull, engine.CaseQuarantined, engine.CaseRefundedBeyond, engine.CaseRefundedElsewhere, engine.CaseRefundedAndReversed, engine.CasePaidTwice, checkout.CasePageAbuse, checkout.CasePageReported, engine.CaseHeld, reconcile.CaseStatement, webhook.CaseExhausted, webhook.CaseDisabled,
}

// findAfter reads the case that a page begins after.
func findAfter(c *cli.Call, text string, f *store.CaseFilter) error {
	if text == "" {
		return nil
	}
	id, err := cli.ParseID(text, "case")
	if err != nil {
		return err
	}
	return c.View(func(tx *store.Tx) error {
		if f.After, err = tx.Case(c.Context(), id); err == nil && f.After == nil {
			err = till.Errorf(till.CodeNotFound, "there is no such case")
		}
		return err
	})
}

// CaseObject is a case as commands print it: with the payment or payout that it is about, or
// none if it is about an endpoint or a page. The evidence is its SHA-256.
func CaseObject(x *store.Case) cli.Object {
	var payment, payout any
	switch {
	case x.Payout: // or a refund: it has a payment, too
		payout = x.SubjectID.String()
	case !strings.HasPrefix(x.Kind, "endpoint_") && !checkout.IsCase(x.Kind):
		payment = x.SubjectID.String()
	}
	return cli.Object{"case_id", x.ID, "client_id", x.ClientID, "subject_id", x.SubjectID.String(), "payment_id", payment, "payout_id", payout,
		"kind", x.Kind, "detail", x.Detail, "opened_at", x.OpenedAt, "closed_at", x.ClosedAt, "closed_by", cli.OrNull(x.ClosedBy),
		"reason", cli.OrNull(x.Reason), "evidence", x.Evidence}
}

var caseColumns = cli.Columns[*store.Case]{
	None:  "There are no cases.",
	Heads: []any{"CASE", "OPENED", "CLOSED", "KIND", "ABOUT", "WHAT"},
	Row: func(x *store.Case) []any {
		about := x.SubjectID.String()
		if x.Payout {
			about = string(x.Noun()) + " " + about
		}
		return []any{x.ID, x.OpenedAt, x.ClosedAt, x.Kind, about, x.Detail}
	},
}

func newCaseShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a case with its evidence",
		Long: `Show a case with its evidence: the payment, payout or endpoint, each call to the
operator, the events, the transactions and the audit log. Use it before you
decide.`,
		Example: `  till cases show 0197a3d2-6c31-7e22-9d5f-1bac8d7e6f50`,
	}
	return cli.OnID(cmd, "case", func(c *cli.Call) error {
		f, err := books.CaseDetailOf(c.Context(), c.Store, c.ID)
		if err != nil {
			return err
		}
		return printCaseDetail(c, f)
	})
}

func newCaseResolve() *cobra.Command {
	var reason, by, evidence string
	cmd := &cobra.Command{
		Use:   "resolve ID",
		Short: "Close a case with a reason",
		Long: `Close a case. Use it when nothing is left to do about the case. Only the case
ends; 'till payment resolve' and 'till payout resolve' end a payment or payout.
If the cause of the case is still there, the case opens again.`,
		Example: `  till cases resolve 0197a3d2-6c31-7e22-9d5f-1bac8d7e6f50 --reason "customer was refunded" --by "Awa N."`,
	}
	f := cmd.Flags()
	cli.AddReason(cmd, &reason, "how the case ended (required)")
	cli.AddBy(cmd, &by, "the person who decides (required)")
	f.StringVar(&evidence, "evidence", "", "the file with the evidence, at most 64 MiB; its SHA-256 is recorded")
	cli.Require(cmd, "reason", "by")
	return cli.OnID(cmd, "case", func(c *cli.Call) error {
		act := books.CaseAction{By: by, Reason: reason}
		if evidence != "" {
			shown, err := cli.ReadEvidence(evidence)
			if err != nil {
				return err
			}
			act.Evidence, act.Named = shown.Digest, shown.Name
		} else if c.Flags().Changed("evidence") {
			return errors.New("--evidence must name a file")
		}
		f, err := books.ResolveCase(c.Context(), c.Store, c.ID, act)
		if err != nil {
			return err
		}
		if f.RemainingCause != "" {
			c.Note("the cause still stands: %s", f.RemainingCause)
		}
		return c.Say(CaseObject(f.Case).With("cause_stands", cli.OrNull(f.RemainingCause)), "case %s: closed\n", f.ID)
	})
}
