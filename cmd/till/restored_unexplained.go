package main

import (
	"io"

	"github.com/spf13/cobra"

	"till/books"
	"till/store"
)

// unexplained prints what a restore has left unexplained and, with --release,
// releases what is held.
func (r *restoredFlags) unexplained(cmd *cobra.Command) error {
	return withDatabase(cmd.Context(), r.database, func(s *store.Store) error {
		var u *books.Unexplained
		var err error
		if r.release {
			u, err = books.Release(cmd.Context(), s, r.by)
		} else {
			u, err = books.ReadUnexplained(cmd.Context(), s)
		}
		if err != nil {
			return err
		}
		return r.printUnexplained(cmd.OutOrStdout(), u)
	})
}

// restoreJSON is a restore as the command prints it.
type restoreJSON struct {
	RestoredAt     string  `json:"restored_at"`
	RestoredBy     string  `json:"restored_by"`
	LostFrom       string  `json:"lost_from"`
	LogID          string  `json:"log_id"`
	KeysReviewedAt *string `json:"keys_reviewed_at"`
}

// undecidedJSON is a possibly sent payment or payout as the command prints it.
type undecidedJSON struct {
	ClientID string `json:"client_id"`
	ID       string `json:"id"`
}

func (r *restoredFlags) printUnexplained(w io.Writer, u *books.Unexplained) error {
	if r.asJSON {
		return r.jsonUnexplained(w, u)
	}
	switch {
	case r.release && len(u.Restores) == 0:
		printLine(w, "Nothing was held because of a restore.")
	case r.release:
		printf(w, "Released by %s: new payouts are taken again.\n", r.by)
	case len(u.Restores) == 0:
		printLine(w, "Nothing is held because of a restore.")
	}
	for _, x := range u.Restores {
		printf(w, "Restored at %s by %s; lost from %s; keys reviewed: %s.\n", x.At, x.By, x.LostFrom, timeOr(x.KeysReviewedAt, "not yet"))
	}
	if u.Empty() {
		_, err := printLine(w, "Nothing is left to explain.")
		return err
	}
	printf(w, "\nNot explained yet (%d of each at most):\n\n", books.MaxUnexplained)
	return table(w, func(row func(...any)) {
		row("WHAT", "ID", "CLIENT", "WHY")
		for _, x := range u.Payouts {
			row("payout", x.Ref.ID, x.Ref.Client, "may have been sent, and is not decided")
		}
		for _, x := range u.Payments {
			row("payment", x.Ref.ID, x.Ref.Client, "may have been sent, and is not decided")
		}
		for _, c := range u.Cases {
			row("case "+c.Kind, c.ID, c.ClientID, c.Detail)
		}
		for _, s := range u.Strays {
			row("stray of "+s.Connection, s.ID, orDash(idOrNull(s.Client)), claimText(s)+"; "+identifiersText(s))
		}
	})
}

func (r *restoredFlags) jsonUnexplained(w io.Writer, u *books.Unexplained) error {
	restores, cases, strays := []restoreJSON{}, []caseJSON{}, []strayJSON{}
	for _, x := range u.Restores {
		restores = append(restores, restoreJSON{x.At.String(), x.By, x.LostFrom.String(), x.LogID.String(), timeOrNull(x.KeysReviewedAt)})
	}
	for _, c := range u.Cases {
		cases = append(cases, caseOut(c))
	}
	for _, s := range u.Strays {
		strays = append(strays, strayOut(s))
	}
	undecided := func(list []store.Undecided) []undecidedJSON {
		out := []undecidedJSON{}
		for _, x := range list {
			out = append(out, undecidedJSON{x.Ref.Client.String(), x.Ref.ID.String()})
		}
		return out
	}
	return printJSON(w, map[string]any{
		"released": r.release, "restores": restores, "payouts": undecided(u.Payouts), "payments": undecided(u.Payments), "cases": cases, "strays": strays,
	})
}
