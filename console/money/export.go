package money

import (
	"context"
	"net/http"

	"till/console/list"
	"till/console/shell"
	"till/people"
	"till/store"
)

// exportPage is where a table with whole phone numbers is asked for.
type exportPage struct {
	*shell.Frame
	Done, Refused string
	Kind          string // "payments", "payouts" or "refunds"
	Back          string // the list
	Path          string // where the form goes to
	Span          string
	Rows          int64
	TooMany       bool
	Most          int
	Proof         *shell.ProofForm
}

// paymentsExport is GET and POST /c/{client}/payments/export: the list's rows with
// whole phone numbers, for those who prove who they are.
func (v *visit) paymentsExport() error {
	return v.export("payments", people.PaymentsSee, v.paymentFilter(), v.listPayments)
}

// payoutsExport is GET and POST /c/{client}/payouts/export.
func (v *visit) payoutsExport() error {
	return v.export("payouts", people.WalletsSee, v.payoutFilter(), v.listPayouts)
}

// refundsExport is GET and POST /c/{client}/refunds/export.
func (v *visit) refundsExport() error {
	return v.export("refunds", people.PaymentsSee, v.refundFilter(), v.listRefunds)
}

func (v *visit) export(kind string, see people.Permission, f *list.Filter, read reader) (err error) {
	if v.Grant = v.Session.May(v.Client, see); v.Grant == people.None {
		return &people.Refusal{Code: people.NotAllowed, Need: see}
	}
	if v.R.Method == http.MethodPost {
		return v.listCSV(kind, f, read, true)
	}
	f.Upto = v.Now
	all := &listPage{Frame: v.Frame(v.Words.T("whole.title"), "menu."+kind), Kind: kind, Filter: f}
	p := &exportPage{Frame: all.Frame, Kind: kind, Back: f.Address(), Path: f.AddressAt(f.Base + "/export"), Most: list.MaxRows}
	p.Modules = append(p.Modules, "passkey.js")
	_, p.Refused = v.Outcome()
	err = v.View(func(ctx context.Context, tx *store.Tx) error { return v.readList(ctx, tx, all, f, read) })
	if err != nil {
		return err
	}
	if p.Rows, p.TooMany = all.Total, all.TooMany || all.Total > list.MaxRows; !f.Examine {
		p.Span = all.Span()
	}
	if p.Proof, err = v.ProofForm(); err != nil {
		return err
	}
	return v.Page("export", p)
}
