package money

import (
	"fmt"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/recovery"
	"till/store"
)

func NewRepair() *cobra.Command {
	return cli.NewGroup("repair", "Rebuild what rows that never change still say", newRepairWallets())
}

func newRepairWallets() *cobra.Command {
	var database, by string
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "wallets",
		Short: "Rebuild wallets that differ from their statements",
		Long: `Rebuild the balance, the reserve and the debt of each wallet that differs from its
lines, the open payouts and the entries, which never change. Use it when 'till verify'
reports I3 for a wallet: Till posts nothing to such a wallet, and answers of operators
about it wait as cases until it is rebuilt.

It shows what it will do and asks. Make a backup first: 'till backup --hold'. The audit
log says who did it. A wallet whose lines contradict each other cannot be rebuilt: put a
backup back. The exit code is 1 if a wallet stays broken.`,
		Example: `  till repair wallets --by "Awa N."
  till repair wallets --by "Awa N." --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error { return repairWallets(cmd, s, by, yes, asJSON) })
		},
	}
	cli.AddBy(cmd, &by, "the person who decides (required)")
	cmd.MarkFlagRequired("by")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it without asking")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// walletRepairJSON is a broken wallet as the command prints it.
type walletRepairJSON struct {
	ClientID string           `json:"client_id"`
	WalletID string           `json:"wallet_id"`
	Currency string           `json:"currency"`
	Was      map[string]int64 `json:"was"`
	Is       map[string]int64 `json:"by_its_lines"`
	Lines    *string          `json:"wrong_lines"` // null: it can be rebuilt
	Rebuilt  bool             `json:"rebuilt"`
}

func repairWallets(cmd *cobra.Command, s *store.Store, by string, yes, asJSON bool) error {
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	all, err := recovery.BrokenWallets(ctx, s)
	if err != nil {
		return err
	}
	var can []*recovery.WalletRepair
	for _, r := range all {
		if r.Lines == "" {
			can = append(can, r)
		}
	}
	if !asJSON {
		printBroken(cmd, all)
	}
	if len(can) > 0 {
		if err := cli.Confirm(cmd, fmt.Sprintf("Rebuild %s?", cli.Count(len(can), "wallet", "wallets")), yes); err != nil {
			return err
		}
	}
	for _, r := range can {
		if err := recovery.RepairWallet(ctx, s, r, by); err != nil {
			return err
		}
	}
	if asJSON {
		err = printRepairs(cmd, all)
	} else if len(can) > 0 {
		_, err = cli.Printf(w, "%s rebuilt. Run 'till verify'.\n", cli.Count(len(can), "wallet was", "wallets were"))
	}
	if err == nil && len(can) < len(all) {
		err = cli.ErrProblems
	}
	return err
}

// printBroken shows what is wrong and what will be done.
func printBroken(cmd *cobra.Command, all []*recovery.WalletRepair) {
	w := cmd.OutOrStdout()
	if len(all) == 0 {
		cli.PrintLine(w, "Every wallet is what its lines say.")
	}
	for _, r := range all {
		cli.Printf(w, "client %s, %s\n", r.Was.ClientID, r)
		if r.Lines != "" {
			cli.Printf(w, "  cannot be rebuilt: of its lines, %s. Lines never change: put back a backup from before the damage.\n", r.Lines)
		}
	}
}

func printRepairs(cmd *cobra.Command, all []*recovery.WalletRepair) error {
	out := []walletRepairJSON{}
	for _, r := range all {
		out = append(out, walletRepairJSON{
			ClientID: r.Was.ClientID.String(), WalletID: r.Was.ID.String(), Currency: r.Was.Currency, Lines: cli.TextOrNull(r.Lines), Rebuilt: r.Lines == "",
			Was: map[string]int64{"balance": r.Was.Balance, "last_sequence": r.Was.LastSequence, "reserved": r.Was.Reserved, "owed": r.Was.Owed},
			Is:  map[string]int64{"balance": r.Is.Balance, "last_sequence": r.Is.LastSequence, "reserved": r.Is.Reserved, "owed": r.Is.Owed},
		})
	}
	return cli.PrintJSON(cmd.OutOrStdout(), cli.Object{"wallets", out})
}
