package money

import (
	"context"
	"fmt"
	"io"
	"time"
	_ "time/tzdata" // --zone works on a machine without a zone table

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/store"
)

func NewReport() *cobra.Command {
	var day, zone, client string
	var test bool
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Report what a day brought, and what the books hold",
		Long: `Report what was collected, taken back, paid out and taken as fees on one day, by
method and currency, and what wallets, suspense, fees and debts come to now. Use it to
close the day. It reads sums, so it is quick however many payments there are.

A day is a day of --zone. It covers all live clients, with --test all test clients,
with --client one. Amounts are in units of their currency.`,
		Example: `  till report --day 2026-11-14 --zone Africa/Brazzaville
  till report --client 0197a3d2-6c31-7e22-9d5f-1bac8d7e6f50 --json`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&day, "day", "", "the day, as 2026-11-14 (default today)")
	f.StringVar(&zone, "zone", "UTC", "the zone whose days are meant, as Africa/Brazzaville")
	f.StringVar(&client, "client", "", "only this client, by its id (default all live clients)")
	f.BoolVar(&test, "test", false, "all test clients instead of the live ones")
	cmd.MarkFlagsMutuallyExclusive("client", "test")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		where, err := time.LoadLocation(zone)
		if err != nil || zone == "Local" {
			return fmt.Errorf("--zone %q is not a zone, such as Africa/Brazzaville or UTC", zone)
		}
		scope := store.Scope{Mode: till.Live}
		if test {
			scope.Mode = till.Test
		}
		if client != "" {
			if scope, err = scopeOf(c.Context(), c.Store, client); err != nil {
				return err
			}
		}
		from, to, err := dayOf(day, where, c.Store.Now())
		if err != nil {
			return err
		}
		r, err := books.ReadDayReport(c.Context(), c.Store, scope, from, to)
		if err != nil {
			return err
		}
		return printDayReport(c, r, scope, where)
	})
}

func scopeOf(ctx context.Context, s *store.Store, text string) (store.Scope, error) {
	id, err := cli.ParseID(text, "client")
	if err != nil {
		return store.Scope{}, err
	}
	var c *till.Client
	err = s.View(ctx, func(tx *store.Tx) error {
		c, err = tx.Client(ctx, id)
		return err
	})
	if err != nil {
		return store.Scope{}, err
	}
	return store.Scope{Client: id, Mode: c.Mode}, nil
}

// dayOf returns the ends of a day in a zone, the second not included.
func dayOf(text string, zone *time.Location, now till.Time) (from, to till.Time, err error) {
	at := now.Std().In(zone)
	if text != "" {
		if at, err = time.ParseInLocation(time.DateOnly, text, zone); err != nil || at.Year() < 1970 {
			return 0, 0, fmt.Errorf("--day %q is not a day, such as 2026-11-14", text)
		}
	}
	y, m, d := at.Date()
	return till.TimeOf(time.Date(y, m, d, 0, 0, 0, 0, zone)), till.TimeOf(time.Date(y, m, d+1, 0, 0, 0, 0, zone)), nil
}

// dayReportJSON is the report as the command prints it. Amounts are in minor
// units, as in the API.
type dayReportJSON struct {
	Day      string        `json:"day"`
	Zone     string        `json:"zone"`
	From     string        `json:"from"`
	To       string        `json:"to"` // not included
	Mode     string        `json:"mode"`
	ClientID *string       `json:"client_id"` // null: all of the mode
	Moved    []flowJSON    `json:"moved"`
	At       string        `json:"balances_at"`
	Balances []balanceJSON `json:"balances"`
	Unfilled bool          `json:"sums_unfilled"`
}

type flowJSON struct {
	Method      string `json:"method"`
	Currency    string `json:"currency"`
	Collections int64  `json:"collections"`
	Collected   string `json:"collected"`
	TakenBack   string `json:"taken_back"`
	Payouts     int64  `json:"payouts"`
	PaidOut     string `json:"paid_out"`
	Fees        string `json:"fees"`
	Refunds     int64  `json:"refunds"`
	Refunded    string `json:"refunded"`
}

// balanceJSON is what the books hold of one currency.
type balanceJSON struct {
	Currency   string `json:"currency"`
	Wallets    string `json:"wallets"`
	Reserved   string `json:"reserved"`
	Receivable string `json:"receivable"` // what clients owe
	Suspense   string `json:"suspense"`
	Fees       string `json:"fees"` // taken since the beginning
}

func dayReportOut(r *books.DayReport, scope store.Scope, zone *time.Location) dayReportJSON {
	out := dayReportJSON{
		Day: r.From.Std().In(zone).Format(time.DateOnly), Zone: zone.String(), From: r.From.String(), To: r.To.String(), Mode: string(scope.Mode),
		ClientID: cli.IDOrNull(scope.Client), Moved: []flowJSON{}, At: r.At.String(), Balances: []balanceJSON{}, Unfilled: r.Unfilled,
	}
	for _, f := range r.Flows {
		out.Moved = append(out.Moved, flowJSON{f.Method, f.Currency, f.In.N, cli.Minor(f.In.Sum), cli.Minor(f.Back.Sum), f.Out.N, cli.Minor(f.Out.Sum), cli.Minor(f.Fee.Sum), f.Refunded.N, cli.Minor(f.Refunded.Sum)})
	}
	for _, b := range balancesOf(r) {
		out.Balances = append(out.Balances, balanceJSON{b.Currency, cli.Minor(b.Balance.Balance), cli.Minor(b.Reserved), cli.Minor(b.Owed), cli.Minor(b.suspense), cli.Minor(b.fees)})
	}
	return out
}

type currencyBalance struct {
	store.Balance
	suspense, fees int64
}

// balancesOf puts what the books hold together by currency, without those that
// nothing was ever moved in.
func balancesOf(r *books.DayReport) (out []currencyBalance) {
	of := func(currency string) *currencyBalance {
		for i := range out {
			if out[i].Currency == currency {
				return &out[i]
			}
		}
		out = append(out, currencyBalance{Balance: store.Balance{Currency: currency}})
		return &out[len(out)-1]
	}
	for _, b := range r.Wallets {
		if b.Balance != 0 || b.Reserved != 0 || b.Owed != 0 {
			of(b.Currency).Balance = b
		}
	}
	for _, m := range r.Suspense {
		if m.Minor != 0 {
			of(m.Currency).suspense = m.Minor
		}
	}
	for _, m := range r.Fees {
		of(m.Currency).fees = m.Minor
	}
	return out
}

func printDayReport(c *cli.Call, r *books.DayReport, scope store.Scope, zone *time.Location) error {
	return c.Show(dayReportOut(r, scope, zone), func(w io.Writer) error {
		who := "all " + string(scope.Mode) + " clients"
		if !scope.Client.IsZero() {
			who = "client " + scope.Client.String()
		}
		cli.Printf(w, "%s (%s), %s\n", r.From.Std().In(zone).Format(time.DateOnly), zone, who)
		if r.Unfilled {
			cli.PrintLine(w, "Sums are still being filled in by the server: older days may lack some.")
		}
		if len(r.Flows) == 0 {
			cli.PrintLine(w, "Nothing moved.")
		} else {
			err := cli.Table(w, func(row func(...any)) {
				row("METHOD", "CURRENCY", "COLLECTED", "OF", "TAKEN BACK", "PAID OUT", "OF", "REFUNDED", "OF", "FEES")
				for _, f := range r.Flows {
					row(f.Method, f.Currency, cli.Major(f.In.Sum, f.Currency), f.In.N, cli.Major(f.Back.Sum, f.Currency), cli.Major(f.Out.Sum, f.Currency), f.Out.N, cli.Major(f.Refunded.Sum, f.Currency), f.Refunded.N, cli.Major(f.Fee.Sum, f.Currency))
				}
			})
			if err != nil {
				return err
			}
		}
		balances := balancesOf(r)
		cli.Printf(w, "Balances at %s\n", r.At)
		if len(balances) == 0 {
			_, err := cli.PrintLine(w, "There is no money in the books.")
			return err
		}
		return cli.Table(w, func(row func(...any)) {
			row("CURRENCY", "WALLETS", "OF IT RESERVED", "RECEIVABLE", "SUSPENSE", "FEES TAKEN")
			for _, b := range balances {
				row(b.Currency, cli.Major(b.Balance.Balance, b.Currency), cli.Major(b.Reserved, b.Currency), cli.Major(b.Owed, b.Currency), cli.Major(b.suspense, b.Currency), cli.Major(b.fees, b.Currency))
			}
		})
	})
}
