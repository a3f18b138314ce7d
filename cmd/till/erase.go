package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/privacy"
	"till/store"
)

// eraseFlags are the flags of 'till erase'.
type eraseFlags struct {
	database, secretFile, phone, olderThan, again, list, by, reason string
	metadata, dryRun, asJSON                                        bool
}

func newErase() *cobra.Command {
	var e eraseFlags
	cmd := &cobra.Command{
		Use:   "erase",
		Short: "Take a person's data out of payments, payouts and checkouts",
		Long: `Take a person's data out of the payments, payouts and checkouts of a phone number,
or of all that are older than some time. Use it when somebody asks for it and no law makes
you keep it. It cannot be undone.

The phone becomes a text that is the same for each row of the number and tells
nobody the number; name and email become null, with --metadata also description
and metadata. Amounts, ids, receipts, statuses and the ledger stay, so the books
verify as before, and a retry of the create call is still answered. What has not
ended, has an open case or late reads to come is left, and counted: run the command
again later. --dry-run only counts.

A backup still has what was erased. --list names a file, on the disk of the backups,
to which a line is added first. After a restore, --again FILE erases all of it again
('till restored --erased FILE' does, too).`,
		Example: `  till erase --phone 242061234567 --list /backup/erased.jsonl --by "Awa N." --reason "letter of 3 March"
  till erase --older-than 10y --metadata --list /backup/erased.jsonl --by "Awa N." --reason "policy"
  till erase --again /backup/erased.jsonl --by "Awa N." --reason "restored a backup"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&e.phone, "phone", "", "the number, in full form as 242061234567")
	f.StringVar(&e.olderThan, "older-than", "", "erase everybody in what is older, as 10y or 400d; at least 30d")
	f.StringVar(&e.again, "again", "", "a file of --list: erase again what it names")
	f.BoolVar(&e.metadata, "metadata", false, "take description and metadata, which are the client's own texts, out as well")
	f.StringVar(&e.list, "list", "", "the file that remembers erasures for the day a backup is restored (required with --phone and --older-than)")
	f.StringVar(&e.reason, "reason", "", "why, for the audit log (required)")
	f.BoolVar(&e.dryRun, "dry-run", false, "say how much it would erase, and change nothing")
	f.StringVar(&e.secretFile, "secret-file", "", "the installation's secret (default till.secret beside the database)")
	cli.AddBy(cmd, &e.by, "the person who erases (required)")
	cli.AddDatabase(cmd, &e.database)
	cli.AddJSON(cmd, &e.asJSON)
	return cmd
}

// check rejects flags that do not go together.
func (e *eraseFlags) check() error {
	ways := 0
	for _, way := range []string{e.phone, e.olderThan, e.again} {
		if way != "" {
			ways++
		}
	}
	switch {
	case ways != 1:
		return errors.New("name one of --phone, --older-than and --again")
	case e.again != "" && (e.list != "" || e.metadata):
		return errors.New("--again has its list, which says about metadata")
	case e.dryRun:
		return nil
	case e.again == "" && e.list == "":
		return errors.New("--list must name the file that remembers the erasure, on the disk of the backups: a restored backup has the data again")
	case e.by == "":
		return errors.New("--by must name who erases")
	}
	return cli.CheckReason(e.reason)
}

// The bounds of --older-than, in days.
const (
	minEraseDays = 30
	maxEraseDays = 100 * 366
)

// cutoff returns the time before which everything is erased.
func cutoff(text string, now till.Time) (till.Time, error) {
	bad := fmt.Errorf("--older-than %q is not a number of years or days, as 10y or 400d, of at least %dd", text, minEraseDays)
	if len(text) < 2 {
		return 0, bad
	}
	n, err := strconv.Atoi(text[:len(text)-1])
	if err != nil || n < 1 || n > maxEraseDays {
		return 0, bad
	}
	at := now.Std()
	switch text[len(text)-1] {
	case 'y':
		at = at.AddDate(-min(n, 1000), 0, 0)
	case 'd':
		at = at.AddDate(0, 0, -n)
	default:
		return 0, bad
	}
	if at.After(now.Std().AddDate(0, 0, -minEraseDays)) {
		return 0, bad
	}
	return max(0, till.TimeOf(at)), nil
}

func (e *eraseFlags) run(cmd *cobra.Command) error {
	if err := e.check(); err != nil {
		return err
	}
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	return cli.WithDatabase(ctx, e.database, func(s *store.Store) error {
		secret, err := cli.ReadSecret(ctx, s, e.database, e.secretFile)
		if err != nil {
			return err
		}
		r := privacy.EraseRequest{Secret: secret, By: e.by, Reason: e.reason, DryRun: e.dryRun}
		if r.Erasures, err = e.erasures(s, secret); err != nil {
			return err
		}
		if !e.dryRun && e.list != "" {
			if err := appendErased(e.list, secret, r, s.Now()); err != nil {
				return err
			}
		}
		done, err := privacy.Erase(ctx, s, r)
		if err != nil {
			return err
		}
		if e.asJSON {
			return cli.PrintJSON(w, cli.Object{"checkouts", done.Checkouts, "dry_run", e.dryRun, "left", done.Left, "payments", done.Payments, "payouts", done.Payouts})
		}
		verb := "erased"
		if e.dryRun {
			verb = "to be erased"
		}
		cli.Printf(w, "%s, %s and %s %s.\n", cli.Count(done.Payments, "payment", "payments"), cli.Count(done.Payouts, "payout", "payouts"),
			cli.Count(done.Checkouts, "checkout", "checkouts"), verb)
		if done.Left > 0 {
			cli.Printf(w, "%s left: not ended, with an open case, or with late reads to come. Run it again later.\n", cli.Count(done.Left, "is", "are"))
		}
		return nil
	})
}

// erasures returns what the flags name.
func (e *eraseFlags) erasures(s *store.Store, secret []byte) ([]privacy.Erasure, error) {
	switch {
	case e.phone != "":
		phone, err := parsePhone(e.phone)
		return []privacy.Erasure{{Phone: phone, Texts: e.metadata}}, err
	case e.olderThan != "":
		before, err := cutoff(e.olderThan, s.Now())
		return []privacy.Erasure{{Before: before, Texts: e.metadata}}, err
	}
	return readErased(e.again, secret)
}
