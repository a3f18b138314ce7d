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
	"till/books"
	"till/store"
)

// restoredFlags are what 'till restored' was told.
type restoredFlags struct {
	database, secretFile, lostFrom, by string
	keysReviewed, suspendLive          bool
	show, release, asJSON              bool
}

func newRestored() *cobra.Command {
	var r restoredFlags
	cmd := &cobra.Command{
		Use:   "restored",
		Short: "Say that an old database was put back, and release what is held since",
		Long: `Say that the database was put back from a backup, or that a standby took over
which did not have everything, and that what was written from --lost-from on is
lost. Run it before the service is started again, or at once where it is running.

  - Every payment and payout that is open here counts as possibly sent: it is
    asked about and not sent.
  - New payouts are held: wallets lack the payouts that are lost. New payments
    on an operator that knows no reference of ours (M-Pesa's push) are taken and
    not sent: each may be the retry of one that was lost.
  - The event logs get a new log_id, by which clients that follow them notice.
  - Every key that works is listed: one that was revoked in the lost time works
    again. End those, and run the same command again with --keys-reviewed.

It may be interrupted and run again. When the operators' statements of the lost
time are applied ('till reconcile --apply'), --release lets go what is held;
--show lists what is not explained yet, and changes nothing.`,
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
	f.StringVar(&r.lostFrom, "lost-from", "", "the time of the backup, or the point of recovery, RFC 3339 in UTC")
	f.BoolVar(&r.keysReviewed, "keys-reviewed", false, "you have looked at the keys that work")
	f.BoolVar(&r.suspendLive, "suspend-live", false, "suspend every live client until somebody resumes it")
	f.StringVar(&r.secretFile, "secret-file", "", "the installation's secret (default till.secret beside the database)")
	f.BoolVar(&r.show, "show", false, "list what is not explained yet")
	f.BoolVar(&r.release, "release", false, "take payouts again, and send what is held; the statements of the lost time are applied")
	addByFlag(cmd, &r.by, "who releases it")
	addDatabaseFlag(cmd, &r.database)
	addJSONFlag(cmd, &r.asJSON)
	return cmd
}

// errKeysNotReviewed says that the command has done all but come to its end.
var errKeysNotReviewed = till.Errorf(till.CodeValidationFailed,
	"this is not the end: look at the keys, end those that must not work ('till key revoke'), and run the same command with --keys-reviewed")

func (r *restoredFlags) restored(cmd *cobra.Command) error {
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	lostFrom, err := parseMoment("lost-from", r.lostFrom)
	if err != nil {
		return err
	}
	return withDatabase(ctx, r.database, func(s *store.Store) error {
		secret, err := readSecret(ctx, s, r.database, r.secretFile)
		if err != nil {
			return err
		}
		if lostFrom > s.Now() {
			return fmt.Errorf("--lost-from %s is in the future", lostFrom)
		}
		if !r.asJSON {
			printf(w, "What was written from %s on is lost. What is open counts as possibly sent from now on, and new payouts are held.\n", lostFrom)
		}
		suspended := 0
		if r.suspendLive {
			if suspended, err = suspendLive(ctx, s); err != nil {
				return err
			}
		}
		done, err := books.MarkRestored(ctx, s, books.RestoreRequest{Secret: secret, LostFrom: lostFrom, KeysReviewed: r.keysReviewed, By: actor()})
		if err != nil {
			return err
		}
		keys, err := activeKeys(ctx, s)
		if err != nil {
			return err
		}
		if err := r.print(w, done, keys, suspended); err != nil {
			return err
		}
		if !r.keysReviewed {
			return errKeysNotReviewed
		}
		return nil
	})
}

// suspendLive suspends the live clients that are not, and counts them.
func suspendLive(ctx context.Context, s *store.Store) (n int, err error) {
	accounts := account.New(s, nil)
	err = eachClient(ctx, s, func(c *till.Client) (bool, error) {
		if c.Mode != till.Live || c.Suspended {
			return true, nil
		}
		n++
		return true, accounts.Suspend(ctx, c.ID, actor())
	})
	return n, err
}

// activeKey is a key that works, with its client.
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

// activeKeys returns the keys of all clients that work.
func activeKeys(ctx context.Context, s *store.Store) ([]activeKey, error) {
	out := []activeKey{}
	err := eachClient(ctx, s, func(c *till.Client) (bool, error) {
		return true, s.View(ctx, func(tx *store.Tx) error {
			keys, err := tx.Keys(ctx, c.ID, maxKeys)
			for _, k := range keys {
				if k.Active(tx.Now()) {
					out = append(out, activeKey{c.ID.String(), c.Name, c.Mode, k.ID, k.Name, k.Scopes, k.CreatedAt.String(), timeOrNull(k.LastUsedAt)})
				}
			}
			return err
		})
	})
	return out, err
}

func (r *restoredFlags) print(w io.Writer, done *books.RestoreResult, keys []activeKey, suspended int) error {
	if r.asJSON {
		return printJSON(w, map[string]any{
			"restored_at": done.At.String(), "lost_from": done.LostFrom.String(), "log_id": done.LogID.String(), "again": done.Again,
			"possibly_sent": map[string]int{"payments": done.Payments, "payouts": done.Payouts},
			"payouts_held":  true, "suspended_clients": suspended, "keys_reviewed": r.keysReviewed, "keys": keys,
		})
	}
	if done.Again {
		printf(w, "This goes on with what was begun at %s.\n", done.At)
	}
	more := ""
	if done.Again {
		more = "more "
	}
	printf(w, "%s and %s were open: they are asked about and not sent.\n",
		count(done.Payments, more+"payment", more+"payments"), count(done.Payouts, more+"payout", more+"payouts"))
	if r.suspendLive {
		printf(w, "%s suspended; 'till client resume' lets one in again.\n", count(suspended, "live client was", "live clients were"))
	}
	printf(w, "The event logs are now %s.\n\nThese keys work, also if they were revoked in the lost time. Fees, methods, endpoints and suspensions are old, too.\n\n", done.LogID)
	err := table(w, func(row func(...any)) {
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
	_, err = printf(w, "\nHeads of audit chains that were kept in the lost time will not be found again: keep new ones ('till audit head').\nRun 'till verify', then start the service. Apply the operators' statements of the lost time, then release with 'till restored --release'.\n")
	return err
}
