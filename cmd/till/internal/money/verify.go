package money

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"till/books"
	"till/cmd/till/internal/cli"
	"till/secret"
	"till/store"
	"till/store/auditlog"
)

func NewVerify() *cobra.Command {
	var database, secretFile, headsFile string
	var tell, asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove that the books are right",
		Long: `Read the whole database and check that each franc is accounted for once. Use it
regularly and after each incident. It changes nothing but its own note of when it
ran and what it found ('till status' shows it), reads in short snapshots and may
run beside a server. On a terminal, or with --progress, it shows its
progress on standard error. The exit code is 0 if all is well, 1 if problems were
found, 2 if the database could not be read.

The audit chains are checked with the installation's secret, from --secret-file
or from till.secret beside the database. Without the secret, all other checks
run, and the output says so. --audit-heads names a file with heads that were kept
('till audit head', or the service's log): each must still be part of its chain.`,
		Example: `  till verify
  till verify --secret-file /etc/till/secret --audit-heads heads.txt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.WithReaders(cmd.Context(), database, verifyReaders, func(s *store.Store) error {
				var o books.Options
				var err error
				bar := cli.NewProgress(cmd.ErrOrStderr(), "rows")
				if tell || bar.Terminal {
					o.Progress = bar.At
				}
				if o.Key, err = AuditKey(cmd.Context(), s, database, secretFile); err != nil {
					return err
				}
				if headsFile != "" {
					if o.Heads, err = readHeads(headsFile); err != nil {
						return err
					}
				}
				began := s.Now()
				report, err := books.Verify(cmd.Context(), s, o)
				bar.End()
				if err != nil {
					return err
				}
				if err := books.NoteVerification(cmd.Context(), s, &report, began, o.Key != nil); err != nil {
					cli.Printf(cmd.ErrOrStderr(), "till: the outcome was not noted: %v\n", err)
				}
				if err := PrintReport(cmd.OutOrStdout(), &report, o.Key != nil, asJSON); err != nil {
					return err
				}
				if !report.Clean() {
					return cli.ErrProblems
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&tell, "progress", false, "show progress also where standard error is not a terminal")
	cmd.Flags().StringVar(&secretFile, "secret-file", "", "the installation's secret (default till.secret beside the database, if it is there)")
	cmd.Flags().StringVar(&headsFile, "audit-heads", "", "a file with kept heads of audit chains")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// AuditKey returns the key of the audit chains, nil if the secret is neither
// named nor in its default place.
func AuditKey(ctx context.Context, s *store.Store, database, secretFile string) (auditlog.ChainKey, error) {
	if secretFile == "" && (store.IsPostgres(database) || !cli.Exists(secret.File(database))) {
		return nil, nil
	}
	secret, err := cli.ReadSecret(ctx, s, database, secretFile)
	if err != nil {
		return nil, err
	}
	return books.ChainKey(secret)
}

// maxHeadsFile is the largest file with heads: a busy log of months.
const maxHeadsFile = 64 << 20

func readHeads(path string) ([]books.AuditHead, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxHeadsFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxHeadsFile {
		return nil, fmt.Errorf("%s is larger than %d MiB: leave only the lines that say \"audit head\"", path, maxHeadsFile>>20)
	}
	heads := books.FindHeads(string(text))
	if len(heads) == 0 {
		return nil, fmt.Errorf("there is no head of an audit chain in %s; 'till audit head' prints them", path)
	}
	return heads, nil
}

// verifyReaders is how many snapshots are read at once.
const verifyReaders = 4

// checked lists what is proved, for the reader of the report.
var checked = []struct{ invariant, what string }{
	{"I1", "entries balance"}, {"I2", "successes are booked once"}, {"I3", "balances are the sums of statements"},
	{"I4", "only legal moves"}, {"I5", "one payment or payout for each key"}, {"I6", "each move has its event"},
	{"I7", "no event is forgotten"}, {"I9", "nothing open is forgotten"}, {"I10", "totals are exact"},
	{"I14", "the audit log is whole and unchanged"}, {"I15", "taxes and items add up"}, {"I16", "no stray's money is in two places"},
	{"I20", "refunds add up, to at most what was paid"}, {"I21", "a refund goes to who paid"},
	{"I22", "one open refund of a payment"}, {"I23", "a refund's lines name it, its money once"},
	{"I24", "at most one live ask of a checkout"}, {"I25", "a checkout is paid by its first credit"},
}

// reportJSON is the report as the command prints it.
type reportJSON struct {
	Clean        bool          `json:"clean"`
	Clients      int64         `json:"clients"`
	Payments     int64         `json:"payments"`
	Payouts      int64         `json:"payouts"` // refunds, too
	Refunds      int64         `json:"refunds"`
	Events       int64         `json:"events"`
	Endpoints    int64         `json:"webhook_endpoints"`
	Wallets      int64         `json:"wallets"`
	Transactions int64         `json:"transactions"`
	Entries      int64         `json:"entries"`
	Counters     int64         `json:"counters"`
	Sums         int64         `json:"sums"`
	SumsUnfilled int64         `json:"sums_unfilled"` // clients, and the installation, whose sums are still being filled in
	Audit        int64         `json:"audit"`
	Seals        int64         `json:"seals"`
	Heads        int64         `json:"audit_heads"`       // that were kept, and are still a part of their chain
	KeyChecked   bool          `json:"audit_key_checked"` // the chains were compared with the installation's key
	Strays       int64         `json:"strays"`
	Checked      []string      `json:"checked"`
	Problems     []problemJSON `json:"problems"`
	Omitted      int64         `json:"omitted"` // problems beyond the longest list
}

type problemJSON struct {
	Invariant string  `json:"invariant"`
	ClientID  string  `json:"client_id"`
	SubjectID *string `json:"subject_id"`
	Detail    string  `json:"detail"`
}

func PrintReport(w io.Writer, r *books.Report, keyed, asJSON bool) error {
	if asJSON {
		out := reportJSON{
			Clean: r.Clean(), Clients: r.Clients, Payments: r.Payments, Payouts: r.Payouts, Refunds: r.Refunds, Events: r.Events, Endpoints: r.Endpoints, Wallets: r.Wallets,
			Transactions: r.Transactions, Entries: r.Entries, Counters: r.Counters, Sums: r.Sums, SumsUnfilled: r.SumsUnfilled, Audit: r.Audit, Seals: r.ChainLinks, Heads: r.Heads, KeyChecked: keyed, Strays: r.Strays,
			Problems: make([]problemJSON, len(r.Problems)), Omitted: r.Omitted,
		}
		for _, c := range checked {
			out.Checked = append(out.Checked, c.invariant)
		}
		for i, p := range r.Problems {
			out.Problems[i] = problemJSON{p.Invariant, p.Client.String(), cli.IDOrNull(p.Subject), p.Detail}
		}
		return cli.PrintJSON(w, out)
	}
	cli.Printf(w, "%s, %s, %s, %d of them refunds, %s, %s, %s, %s, %s, %s, %s, %d of them sealed, %s\n",
		cli.Count(r.Clients, "client", "clients"), cli.Count(r.Payments, "payment", "payments"), cli.Count(r.Payouts, "payout", "payouts"), r.Refunds, cli.Count(r.Events, "event", "events"),
		cli.Count(r.Endpoints, "endpoint", "endpoints"), cli.Count(r.Wallets, "wallet", "wallets"), cli.Count(r.Transactions, "transaction", "transactions"),
		cli.Count(r.Entries, "entry", "entries"), cli.Count(r.Counters+r.Sums, "counter", "counters"), cli.Count(r.Audit, "audit row", "audit rows"), r.ChainLinks, cli.Count(r.Strays, "stray", "strays"))
	for _, c := range checked {
		problems := 0
		for _, p := range r.Problems {
			if p.Invariant == c.invariant {
				problems++
			}
		}
		verdict := "ok"
		if problems > 0 {
			verdict = cli.Count(problems, "problem", "problems")
		}
		cli.Printf(w, "%-4s %-40s %s\n", c.invariant, c.what, verdict)
	}
	if !keyed && r.ChainLinks > 0 {
		cli.PrintLine(w, "The audit chains were not compared with the installation's key: name it with --secret-file.")
	}
	if r.SumsUnfilled > 0 {
		cli.Printf(w, "The sums of %s are still being filled in by the server and were not compared.\n", cli.Count(r.SumsUnfilled, "client", "clients"))
	}
	if r.Heads > 0 {
		cli.Printf(w, "%s.\n", cli.Count(r.Heads, "kept head is still a part of its audit chain", "kept heads are still a part of their audit chains"))
	}
	if r.Clean() {
		_, err := cli.PrintLine(w, "The books are right.")
		return err
	}
	for _, p := range r.Problems {
		cli.Printf(w, "%s  client %s", p.Invariant, p.Client)
		if !p.Subject.IsZero() {
			cli.Printf(w, "  %s", p.Subject)
		}
		cli.Printf(w, ": %s\n", p.Detail)
	}
	if r.Omitted > 0 {
		cli.Printf(w, "and %d more\n", r.Omitted)
	}
	return nil
}
