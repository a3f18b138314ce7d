package console

import (
	"context"
	"net/http"

	"till/people"
	"till/store"
)

// exportPage is where a table with whole phone numbers is asked for.
type exportPage struct {
	*Frame
	Done, Refused string
	Kind          string // "payments" or "payouts"
	Back          string // the list
	Path          string // where the form goes to
	Span          string
	Rows          int64
	TooMany       bool
	Most          int
	Proof         *proofForm
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

func (v *visit) export(kind string, see people.Permission, f *filter, read reader) (err error) {
	if v.grant = v.session.May(v.client, see); v.grant == people.None {
		return &people.Refusal{Code: people.NotAllowed, Need: see}
	}
	if v.r.Method == http.MethodPost {
		return v.listCSV(kind, f, read, true)
	}
	f.Upto = v.now
	list := &listPage{Frame: v.frame(v.words.T("whole.title"), "menu."+kind), Kind: kind, Filter: f}
	p := &exportPage{Frame: list.Frame, Kind: kind, Back: f.path(), Path: f.pathOf(f.base + "/export"), Most: maxCSVRows}
	p.Modules = append(p.Modules, "passkey.js")
	_, p.Refused = v.told()
	err = v.view(func(ctx context.Context, tx *store.Tx) error { return v.readList(ctx, tx, list, f, read) })
	if err != nil {
		return err
	}
	if p.Rows, p.TooMany = list.Total, list.TooMany || list.Total > maxCSVRows; !f.Examine {
		p.Span = list.Span()
	}
	if p.Proof, err = v.proofForm(); err != nil {
		return err
	}
	return v.page("export", p)
}
