package figures

import (
	"context"

	"till"
	"till/checkout"
	"till/console/shell"
	"till/people"
	"till/store"
	"till/store/checkouts"
)

// maxPageRows is how many names, and how many cases about pages, are shown at once.
const maxPageRows = 10

// pagesWaiting reads the cases about pages that customers pay on: the merchant can look at the
// page, and switch a link off.
func (v *visit) pagesWaiting(ctx context.Context, tx *store.Tx, p *homePage, cases []*store.Case) error {
	n := 0
	for _, c := range cases {
		if !checkout.IsCase(c.Kind) || n == maxPageRows || c.SubjectID.Time() < v.Earliest() {
			continue
		}
		n++
		row := waitingRow{Icon: "warn", Tone: "pending", Text: v.Words.T("home." + c.Kind), Note: v.Words.T("home." + c.Kind + "_note"), Path: v.ClientPath("/checkouts/" + c.SubjectID.String())}
		l, err := checkouts.GetLink(ctx, tx, store.Ref{Client: c.ClientID, ID: c.SubjectID})
		switch {
		case err == nil:
			row.Path, row.Text = v.ClientPath("/links/"+c.SubjectID.String()), row.Text+" · "+l.Title
		case till.ErrorCode(err) != till.CodeLinkNotFound:
			return err
		}
		p.Waiting = append(p.Waiting, row)
	}
	return nil
}

// namesWaiting are the names on pages that the house has to confirm.
type namesWaiting struct {
	Names         []nameRow
	Confirm       bool // the person may
	Proof         *shell.ProofForm
	Done, Refused string
}

type nameRow struct {
	Client, Own, Shown, Asked, Note string
}

// readNames reads them, the one that has waited longest first.
func (v *visit) readNames(p *namesWaiting) error {
	p.Done, p.Refused = v.Outcome()
	err := v.View(func(ctx context.Context, tx *store.Tx) error {
		p.Names = nil
		all, err := checkouts.PayNamesAsked(ctx, tx, maxPageRows)
		for _, n := range all {
			c, err := tx.Client(ctx, n.Client)
			if err != nil {
				return err
			}
			p.Names = append(p.Names, nameRow{Client: n.Client.String(), Own: c.Name, Shown: checkout.NameOnPages(c.Name, n.Shown), Asked: n.Asked,
				Note: v.Words.T("house.name_note", "who", till.NameOfActor(n.AskedBy), "at", v.Clock.Moment(n.AskedAt, v.Now))})
		}
		return err
	})
	if p.Confirm = v.Session.MayHouse(people.ClientsManage); err == nil && p.Confirm && len(p.Names) > 0 {
		p.Proof, err = v.ProofForm()
	}
	return err
}
