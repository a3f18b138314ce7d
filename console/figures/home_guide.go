package figures

import (
	"context"

	"till"
	"till/console/shell"
	"till/people"
	"till/store"
	"till/store/access"
	"till/store/webhooks"
)

// todoList is what is to be ticked off.
type todoList struct {
	TodoTitle string
	Todo      []todoRow
	TodoDone  int64
}

type todoRow struct {
	Text, Note, Path string
	Done             bool
}

// setTodo puts rows of keys into words. If all is done, there is no list.
func (v *visit) setTodo(l *todoList, title string, rows []todoRow) {
	for i := range rows {
		r := &rows[i]
		r.Text, r.Note = v.Words.T(r.Text), v.Words.T(r.Note)
		if r.Done {
			l.TodoDone++
		}
	}
	if int(l.TodoDone) < len(rows) {
		l.TodoTitle, l.Todo = v.Words.T(title), rows
	}
}

// readGuide makes home a guide until the merchant's first payment is paid. Who sees
// only the last days cannot know whether there was one, and gets none.
func (v *visit) readGuide(ctx context.Context, tx *store.Tx, p *homePage) error {
	if p.Paid > 0 || v.Earliest() > 0 {
		return nil
	}
	count := func(status till.Status) (n int64, err error) {
		_, n, err = tx.ListPayments(ctx, v.Client.ID, store.PaymentFilter{Status: status}, store.Page{})
		return n, err
	}
	paid, err := count(till.Success)
	if err != nil || paid > 0 {
		return err
	}
	all, err := count("")
	if err != nil {
		return err
	}
	pending, err := count(till.Pending)
	if err != nil {
		return err
	}
	processing, err := count(till.Processing)
	if err != nil {
		return err
	}
	keys, err := access.CountActiveKeys(ctx, tx, v.Client.ID)
	if err != nil {
		return err
	}
	endpoints, err := webhooks.Endpoints(ctx, tx, v.Client.ID, 1)
	if err != nil {
		return err
	}
	p.Never = all == 0
	rows := []todoRow{
		{Text: "guide.key", Note: "guide.key_note", Done: keys > 0},
		{Text: "guide.request", Note: "guide.request_note", Done: all > 0},
		{Text: "guide.prompt", Note: "guide.prompt_note", Done: all > pending+processing},
		{Text: "guide.webhook", Note: "guide.webhook_note", Done: len(endpoints) > 0},
		{Text: "guide.factor", Note: "guide.factor_note", Path: shell.Prefix + "/me", Done: v.Session.Person.HasFactor()},
		{Text: "guide.live", Note: "guide.live_note", Done: v.Client.Mode == till.Live},
	}
	if v.May(people.KeysManage) {
		rows[0].Path = v.ClientPath("/keys")
	}
	if v.May(people.Collect) {
		rows[1].Path = v.ClientPath("/collect")
	}
	if v.Client.Mode == till.Test && v.May(people.SandboxUse) {
		rows[1].Path, rows[2].Path = v.ClientPath("/sandbox"), v.ClientPath("/sandbox")
	}
	if v.May(people.WebhooksManage) {
		rows[3].Path = v.ClientPath("/webhooks")
	}
	v.setTodo(&p.todoList, "guide.title", rows)
	return nil
}
