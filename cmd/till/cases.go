package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/engine"
	"till/server"
	"till/store"
	"till/webhook"
)

func newCases() *cobra.Command {
	var database, client, kind, after string
	var closed, all, asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:     "cases",
		Aliases: []string{"case"},
		Short:   "List what a person has to look at",
		Long: `List the open cases: payments and payouts that the operator does not decide, money
that came late or in another amount, endpoints that do not answer. Use it every
day. The case that has been open longest comes first; with --closed or --all the
newest.

'till payment resolve', 'till payout resolve' and 'till cases resolve' close a
case. It also closes when the operator decides after all. Problems of a whole
connection are printed first; with --json they are in 'till connections'.`,
		Example: `  till cases --kind late_money
  till cases show 0197a3d2-6c31-7e22-9d5f-1bac8d7e6f50`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := store.CaseFilter{Kind: kind, Closed: closed, All: all, Limit: limit}
			if limit < 1 || limit > books.MaxCases {
				return fmt.Errorf("--limit is from 1 to %d", books.MaxCases)
			}
			if kind != "" && !slices.Contains(caseKinds, kind) {
				return errors.New("--kind is one of: " + strings.Join(caseKinds, ", "))
			}
			if client != "" {
				var err error
				if f.Client, err = cli.ParseID(client, "client"); err != nil {
					return err
				}
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				if err := findAfter(cmd.Context(), s, after, &f); err != nil {
					return err
				}
				cases, err := books.Cases(cmd.Context(), s, f)
				if err != nil {
					return err
				}
				if len(cases) == limit {
					cli.Printf(cmd.ErrOrStderr(), "till: %s shown; those after: --after %s\n", cli.Count(limit, "case is", "cases are"), cases[limit-1].ID)
				}
				if err := reportOperatorCases(cmd, s, asJSON); err != nil {
					return err
				}
				if err := reportStrays(cmd, s); err != nil {
					return err
				}
				return printCases(cmd.OutOrStdout(), cases, asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&client, "client", "", "only this client, by its id (default all)")
	f.StringVar(&kind, "kind", "", "only this kind, for example late_money (default all)")
	f.BoolVar(&closed, "closed", false, "list closed cases, newest first")
	f.BoolVar(&all, "all", false, "list open and closed cases, newest first")
	f.IntVar(&limit, "limit", 200, fmt.Sprintf("how many to list, at most %d", books.MaxCases))
	f.StringVar(&after, "after", "", "list from after this case: the last id of the page before")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	cmd.MarkFlagsMutuallyExclusive("closed", "all")
	cmd.AddCommand(newCaseShow(), newCaseResolve())
	return cmd
}

// caseKinds lists all kinds of cases, so that a typing mistake is an error and
// not an empty list.
var caseKinds = []string{
	engine.CaseOverdue, engine.CaseUnknownStatus, engine.CaseMismatch, engine.CaseContradiction, engine.CaseLateMoney, engine.CaseReversed,
	engine.CaseReceiptReused, engine.CaseWalletFull, engine.CaseQuarantined, engine.CaseHeld, books.CaseStatement, webhook.CaseExhausted, webhook.CaseDisabled,
}

// findAfter reads the case that a page begins after.
func findAfter(ctx context.Context, s *store.Store, text string, f *store.CaseFilter) error {
	if text == "" {
		return nil
	}
	id, err := cli.ParseID(text, "case")
	if err != nil {
		return err
	}
	return s.View(ctx, func(tx *store.Tx) error {
		if f.After, err = tx.Case(ctx, id); err == nil && f.After == nil {
			err = till.Errorf(till.CodeNotFound, "there is no such case")
		}
		return err
	})
}

// caseJSON is a case as the command prints it.
type caseJSON struct {
	CaseID    string  `json:"case_id"`
	ClientID  string  `json:"client_id"`
	SubjectID string  `json:"subject_id"`
	PaymentID *string `json:"payment_id"` // the subject, unless it is a payout or an endpoint
	PayoutID  *string `json:"payout_id"`
	Kind      string  `json:"kind"`
	Detail    string  `json:"detail"`
	OpenedAt  string  `json:"opened_at"`
	ClosedAt  *string `json:"closed_at"`
	ClosedBy  *string `json:"closed_by"`
	Reason    *string `json:"reason"`
	Evidence  *string `json:"evidence"` // SHA-256
}

func caseOut(c *store.Case) caseJSON {
	out := caseJSON{
		CaseID: c.ID.String(), ClientID: c.ClientID.String(), SubjectID: c.SubjectID.String(), Kind: c.Kind, Detail: c.Detail,
		OpenedAt: c.OpenedAt.String(), ClosedAt: cli.TimeOrNull(c.ClosedAt), ClosedBy: cli.TextOrNull(c.ClosedBy), Reason: cli.TextOrNull(c.Reason),
		Evidence: cli.TextOrNull(hex.EncodeToString(c.Evidence)),
	}
	switch {
	case c.Payout:
		out.PayoutID = &out.SubjectID
	case !strings.HasPrefix(c.Kind, "endpoint_"):
		out.PaymentID = &out.SubjectID
	}
	return out
}

func printCases(w io.Writer, cases []*store.Case, asJSON bool) error {
	if asJSON {
		items := make([]caseJSON, len(cases))
		for i, c := range cases {
			items[i] = caseOut(c)
		}
		return cli.PrintJSON(w, map[string]any{"items": items})
	}
	if len(cases) == 0 {
		_, err := cli.PrintLine(w, "There are no cases.")
		return err
	}
	return cli.Table(w, func(row func(...any)) {
		row("CASE", "OPENED", "CLOSED", "KIND", "ABOUT", "WHAT")
		for _, c := range cases {
			about := c.SubjectID.String()
			if c.Payout {
				about = "payout " + about
			}
			row(c.ID, c.OpenedAt, cli.TimeOr(c.ClosedAt, "-"), c.Kind, about, c.Detail)
		}
	})
}

func newCaseShow() *cobra.Command {
	var database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a case with its evidence",
		Long: `Show a case with its evidence: the payment, payout or endpoint, each call to the
operator, the events, the transactions and the audit log. Use it before you
decide.`,
		Example: `  till cases show 0197a3d2-6c31-7e22-9d5f-1bac8d7e6f50`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := cli.ParseID(args[0], "case")
			if err != nil {
				return err
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				f, err := books.CaseDetailOf(cmd.Context(), s, id)
				if err != nil {
					return err
				}
				return printCaseDetail(cmd.OutOrStdout(), f, asJSON)
			})
		},
	}
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

func newCaseResolve() *cobra.Command {
	var database, reason, by, evidence string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "resolve ID",
		Short: "Close a case with a reason",
		Long: `Close a case. Use it when nothing is left to do about the case. Only the case
ends; 'till payment resolve' and 'till payout resolve' end a payment or payout.
If the cause of the case is still there, the case opens again.`,
		Example: `  till cases resolve 0197a3d2-6c31-7e22-9d5f-1bac8d7e6f50 --reason "customer was refunded" --by "Awa N."`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := cli.ParseID(args[0], "case")
			if err != nil {
				return err
			}
			if err := cli.CheckReason(reason); err != nil {
				return err
			}
			act := books.CaseAction{By: by, Reason: server.Redact(reason)}
			if evidence != "" {
				shown, err := cli.ReadEvidence(evidence)
				if err != nil {
					return err
				}
				act.Evidence, act.Named = shown.Digest, shown.Name
			} else if cmd.Flags().Changed("evidence") {
				return errors.New("--evidence must name a file")
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				f, err := books.ResolveCase(cmd.Context(), s, id, act)
				if err != nil {
					return err
				}
				if f.RemainingCause != "" {
					cli.PrintLine(cmd.ErrOrStderr(), "till: the cause still stands: "+f.RemainingCause)
				}
				w := cmd.OutOrStdout()
				if asJSON {
					return cli.PrintJSON(w, struct {
						caseJSON
						Stands *string `json:"cause_stands"`
					}{caseOut(f.Case), cli.TextOrNull(f.RemainingCause)})
				}
				_, err = cli.Printf(w, "case %s: closed\n", f.ID)
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&reason, "reason", "", "how the case ended (required)")
	cli.AddBy(cmd, &by, "the person who decides (required)")
	f.StringVar(&evidence, "evidence", "", "the file with the evidence, at most 64 MiB; its SHA-256 is recorded")
	cmd.MarkFlagRequired("reason")
	cmd.MarkFlagRequired("by")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}
