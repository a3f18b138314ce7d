package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/account"
	"till/cmd/till/internal/cli"
	"till/privacy"
	"till/recovery"
	"till/store"
	"till/store/access"
)

// restoredFlags are the flags of 'till restored'.
type restoredFlags struct {
	database, secretFile, lostFrom, by string
	keysReviewed, suspendLive          bool
	show, release, yes, asJSON         bool
	journals                           []string
	skipDamaged                        bool
	erasedList                         string
}

func newRestored() *cobra.Command {
	var r restoredFlags
	cmd := &cobra.Command{
		Use:   "restored",
		Short: "Mark the database as restored from a backup",
		Long: `Mark the database as restored from a backup, or as a standby that took over
without the latest commits. What was written from --lost-from on is lost. Run it
before the service starts again, or at once where it is running.

  - Each open payment and payout counts as possibly sent: Till checks it and
    does not send it.
  - New payouts are held, because wallets lack the payouts that are lost. New
    payments on an operator that knows no reference of ours (M-Pesa's push) are
    accepted and not sent: each may be the retry of a lost one.
  - The event logs get a new log_id, so that clients which read them notice.
  - Each working key is listed: a key that was revoked in the lost time works
    again. Revoke those, and run the same command again with --keys-reviewed.

With --journal, the payments and payouts that 'till serve --journal' recorded and
that the database lacks are made again under their own ids and keys. They count as
possibly sent, too. A payout whose money came in during the lost time waits: run
the same command again once the payments are settled.

With --erased, what 'till erase' took out since the backup is taken out again.

It may be interrupted and run again. Apply the operators' statements of the lost
time ('till reconcile --apply'), then release what is held with --release.
--show adds up and lists what is not explained yet, and changes nothing. --release
asks before it releases while payments, payouts or strays are undecided.`,
		Example: `  till restored --lost-from 2026-11-15T08:00:00Z
  till restored --lost-from 2026-11-15T08:00:00Z --keys-reviewed --journal /mnt/journal
  till restored --release --by "Awa N."`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case r.show && r.release:
				return errors.New("--show and --release are not given together")
			case r.show:
				return r.unexplained(cmd)
			case r.release:
				if r.by == "" {
					return errors.New("--by must name who releases it")
				}
				return r.unexplained(cmd)
			case r.lostFrom == "":
				return errors.New("say from when on everything is lost, the time of the backup, with --lost-from 2026-03-02T09:15:42Z; or --show, or --release")
			}
			return r.restored(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.lostFrom, "lost-from", "", "the time of the backup or the point of recovery, RFC 3339 in UTC")
	f.BoolVar(&r.keysReviewed, "keys-reviewed", false, "confirm that a person has reviewed the working keys")
	f.BoolVar(&r.suspendLive, "suspend-live", false, "suspend all live clients until a person resumes them")
	f.StringArrayVar(&r.journals, "journal", nil, "the folder of a journal to make lost payments and payouts from; may be repeated, one for each instance (default none)")
	f.BoolVar(&r.skipDamaged, "skip-damaged", false, "go on with what can be read of a damaged journal")
	f.StringVar(&r.erasedList, "erased", "", "the file of 'till erase --list': erase again what it names (default none)")
	f.StringVar(&r.secretFile, "secret-file", "", "the installation's secret (default till.secret beside the database)")
	f.BoolVar(&r.show, "show", false, "list what is not explained yet, and change nothing")
	f.BoolVar(&r.release, "release", false, "accept payouts again and send what is held, once the lost time's statements are applied")
	f.BoolVar(&r.yes, "yes", false, "release without asking, whatever is undecided")
	cli.AddBy(cmd, &r.by, "the person who releases it")
	cli.AddDatabase(cmd, &r.database)
	cli.AddJSON(cmd, &r.asJSON)
	return cmd
}

// errKeysNotReviewed means that only the review of the keys is left.
var errKeysNotReviewed = till.Errorf(till.CodeValidationFailed,
	"this is not the end: look at the keys, end those that must not work ('till key revoke'), and run the same command with --keys-reviewed")

func (r *restoredFlags) restored(cmd *cobra.Command) error {
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	lostFrom, err := cli.ParseMoment("lost-from", r.lostFrom)
	if err != nil {
		return err
	}
	return cli.WithDatabase(ctx, r.database, func(s *store.Store) error {
		secret, err := cli.ReadSecret(ctx, s, r.database, r.secretFile)
		if err != nil {
			return err
		}
		if lostFrom > s.Now() {
			return fmt.Errorf("--lost-from %s is in the future", lostFrom)
		}
		if !r.asJSON {
			cli.Printf(w, "What was written from %s on is lost. What is open counts as possibly sent from now on, and new payouts are held.\n", lostFrom)
		}
		suspended := 0
		if r.suspendLive {
			if suspended, err = suspendLive(ctx, s); err != nil {
				return err
			}
		}
		done, err := recovery.MarkRestored(ctx, s, recovery.RestoreRequest{Secret: secret, LostFrom: lostFrom, KeysReviewed: r.keysReviewed, By: cli.Actor()})
		if err != nil {
			return err
		}
		remade, err := r.remake(ctx, s, secret, lostFrom)
		if err != nil {
			return err
		}
		erased, err := r.eraseAgain(ctx, s, secret)
		if err != nil {
			return err
		}
		keys, err := activeKeys(ctx, s)
		if err != nil {
			return err
		}
		if err := r.print(w, done, remade, erased, keys, suspended); err != nil {
			return err
		}
		if !r.keysReviewed {
			return errKeysNotReviewed
		}
		return nil
	})
}

// suspendLive suspends all live clients and returns how many.
func suspendLive(ctx context.Context, s *store.Store) (n int, err error) {
	accounts := account.New(s, nil)
	err = s.EachClient(ctx, func(c *till.Client) (bool, error) {
		if c.Mode != till.Live || c.Suspended {
			return true, nil
		}
		n++
		return true, accounts.Suspend(ctx, c.ID, cli.Actor())
	})
	return n, err
}

// activeKey is a working key with its client.
type activeKey struct {
	ClientID   string       `json:"client_id"`
	Client     string       `json:"client"`
	Mode       till.Mode    `json:"mode"`
	KeyID      string       `json:"key_id"`
	Name       string       `json:"name"`
	Scopes     []till.Scope `json:"scopes"`
	CreatedAt  string       `json:"created_at"`
	LastUsedAt *string      `json:"last_used_at"`
}

// activeKeys returns all working keys.
func activeKeys(ctx context.Context, s *store.Store) ([]activeKey, error) {
	out := []activeKey{}
	err := s.EachClient(ctx, func(c *till.Client) (bool, error) {
		return true, s.View(ctx, func(tx *store.Tx) error {
			keys, err := access.Keys(ctx, tx, c.ID, maxKeys)
			for _, k := range keys {
				if k.Active(tx.Now()) {
					out = append(out, activeKey{c.ID.String(), c.Name, c.Mode, k.ID, k.Name, k.Scopes, k.CreatedAt.String(), cli.TimeOrNull(k.LastUsedAt)})
				}
			}
			return err
		})
	})
	return out, err
}

func (r *restoredFlags) print(w io.Writer, done *recovery.RestoreResult, remade *recovery.RemakeResult, erased *privacy.EraseResult, keys []activeKey, suspended int) error {
	if r.asJSON {
		all := map[string]any{
			"restored_at": done.At.String(), "lost_from": done.LostFrom.String(), "log_id": done.LogID.String(), "again": done.Again,
			"possibly_sent": map[string]int{"payments": done.Payments, "payouts": done.Payouts},
			"payouts_held":  true, "suspended_clients": suspended, "keys_reviewed": r.keysReviewed, "keys": keys,
		}
		if remade != nil {
			all["journal"] = remadeJSON(remade)
		}
		if erased != nil {
			all["erased"] = map[string]int{"payments": erased.Payments, "payouts": erased.Payouts, "checkouts": erased.Checkouts, "left": erased.Left}
		}
		return cli.PrintJSON(w, all)
	}
	if done.Again {
		cli.Printf(w, "This goes on with what was begun at %s.\n", done.At)
	}
	more := ""
	if done.Again {
		more = "more "
	}
	cli.Printf(w, "%s and %s were open: they are asked about and not sent.\n",
		cli.Count(done.Payments, more+"payment", more+"payments"), cli.Count(done.Payouts, more+"payout", more+"payouts"))
	printRemade(w, remade)
	if erased != nil {
		cli.Printf(w, "%s, %s and %s erased again, %d left: run 'till erase --again' once they have ended.\n",
			cli.Count(erased.Payments, "payment", "payments"), cli.Count(erased.Payouts, "payout", "payouts"), cli.Count(erased.Checkouts, "checkout", "checkouts"), erased.Left)
	}
	if r.suspendLive {
		cli.Printf(w, "%s suspended; 'till client resume' lets one in again.\n", cli.Count(suspended, "live client was", "live clients were"))
	}
	cli.Printf(w, "The event logs are now %s.\n\nThese keys work, also if they were revoked in the lost time. Fees, methods, endpoints and suspensions are old, too.\n\n", done.LogID)
	err := cli.Table(w, func(row func(...any)) {
		row("KEY", "CLIENT", "MODE", "NAME", "LAST USED", "SCOPES")
		for _, k := range keys {
			used := "never"
			if k.LastUsedAt != nil {
				used = *k.LastUsedAt
			}
			scopes := make([]string, len(k.Scopes))
			for i, s := range k.Scopes {
				scopes[i] = string(s)
			}
			row(k.KeyID, k.ClientID+" "+k.Client, k.Mode, k.Name, used, strings.Join(scopes, ","))
		}
	})
	if err != nil || !r.keysReviewed {
		return err
	}
	_, err = cli.Printf(w, "\nHeads of audit chains that were kept in the lost time will not be found again: keep new ones ('till audit head').\nRun 'till verify', then start the service. Apply the operators' statements of the lost time, then release with 'till restored --release'.\n")
	return err
}
