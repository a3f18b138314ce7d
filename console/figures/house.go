package figures

import (
	"context"
	"strings"

	"till"
	"till/books"
	"till/console/shell"
	"till/console/subject"
	"till/people"
	"till/store"
	"till/store/admin"
)

// housePage is the first page of the installation's staff. It shows, and lets names on pages be
// confirmed.
type housePage struct {
	*shell.Frame
	*figures
	Region    string
	Status    *books.Status
	Modes     []shell.Choice
	Pretend   bool // the figures are of test merchants
	Merchants int64

	Troubles  []waitingRow
	Operators []operatorRow
	Cases     []caseRow
	OpenRows  []ageRow
	Suspense  []till.Money
	Webhooks  []waitingRow
	Behind    int64 // events
	Verified  shell.Chip
	VerifyOf  string // when
	todoList
	namesWaiting
}

type caseRow struct {
	Text, Age string
	N         int64
}

type ageRow struct {
	Text string
	N    int64
	Note string
}

// house is GET /house.
func (v *visit) house() error {
	p := &housePage{Frame: v.Frame(v.Words.T("menu.house"), "menu.house")}
	err := v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		if p.Status, err = books.StatusOf(ctx, tx); err != nil {
			return err
		}
		scope := store.Scope{Mode: till.Live}
		if p.Pretend = v.R.URL.Query().Get("mode") == string(till.Test) || p.Status.Live.Clients == 0; p.Pretend {
			scope.Mode = till.Test
		}
		p.figures, err = v.readFigures(ctx, tx, scope, shell.Prefix+"/house", "")
		return err
	})
	if err != nil {
		return err
	}
	v.describe(p)
	if err := v.todo(p); err != nil {
		return err
	}
	if err := v.readNames(&p.namesWaiting); err != nil {
		return err
	}
	p.Title = v.Words.T("menu.house")
	p.Region = v.R.URL.RequestURI()
	return v.Page("house", p)
}

// describe puts the status into words.
func (v *visit) describe(p *housePage) {
	s, t := p.Status, v.Words.T
	part := &s.Live
	if p.Pretend {
		part = &s.Test
	}
	p.Merchants, p.Behind = part.Clients, part.Webhooks.Behind
	if s.Live.Clients > 0 && s.Test.Clients > 0 {
		p.Modes = []shell.Choice{{Text: t("house.live"), Path: shell.Prefix + "/house", Current: !p.Pretend}, {Text: t("house.test"), Path: shell.Prefix + "/house?mode=test", Current: p.Pretend}}
	}
	for _, trouble := range s.Troubles() {
		r := waitingRow{Icon: "warn", Tone: "pending", Text: t("house.trouble_" + string(trouble.Name))}
		if trouble.Stops {
			r.Tone = "failed"
		}
		p.Troubles = append(p.Troubles, r)
	}
	for _, o := range part.Operators {
		p.Operators = append(p.Operators, v.operatorRow(o))
	}
	for _, c := range part.Cases {
		p.Cases = append(p.Cases, caseRow{subject.CaseKind(v.Visit, c.Kind), t("house.since", "at", v.Clock.Moment(c.Oldest, v.Now)), c.Count})
	}
	for _, o := range part.Open {
		p.OpenRows = append(p.OpenRows, ageRow{t("house.open_" + string(o.Kind)), o.N, t("house.ages", "m", o.FiveMinutes, "h", o.Hour, "d", o.Day)})
	}
	for _, a := range part.Suspense {
		p.Suspense = append(p.Suspense, till.Money{Minor: a.Minor, Currency: a.Currency})
	}
	if b := &part.Webhooks; b.Failing > 0 {
		p.Webhooks = append(p.Webhooks, waitingRow{Icon: "warn", Tone: "failed", Text: t("house.hooks_fail", "n", b.Failing), Note: t("house.since", "at", v.Clock.Moment(b.Since, v.Now))})
	}
	if b := &part.Webhooks; b.Disabled > 0 {
		p.Webhooks = append(p.Webhooks, waitingRow{Icon: "warn", Tone: "failed", Text: t("house.hooks_off", "n", b.Disabled), Note: t("house.hooks_off_note")})
	}
	switch l := s.Verified; {
	case l == nil:
		p.Verified, p.VerifyOf = shell.Chip{Tone: "pending", Icon: "clock", Text: t("house.never_proven")}, t("house.run_verify")
	case l.Problems > 0:
		p.Verified, p.VerifyOf = shell.Chip{Tone: "failed", Icon: "cross", Text: t("house.problems", "n", l.Problems)}, v.Clock.DateTime(l.At)
	default:
		p.Verified, p.VerifyOf = shell.Chip{Tone: "paid", Icon: "check", Text: t("house.proven")}, v.Clock.DateTime(l.At)
	}
}

func (v *visit) operatorRow(o *books.OperatorStatus) operatorRow {
	t, r := v.Words.T, operatorRow{Name: o.Connection}
	if o.Payouts {
		r.Name += " · " + t("menu.payouts")
	}
	switch o.State {
	case admin.Passing:
		r.Chip = shell.Chip{Tone: "paid", Icon: "check", Text: t("health.operational")}
	case admin.Stopped:
		r.Chip, r.Note = shell.Chip{Tone: "failed", Icon: "cross", Text: t("house.stopped")}, t("house.stopped_note", "at", v.Clock.Moment(o.Since, v.Now), "again", v.Clock.Moment(o.RetryAt, v.Now))
	default:
		r.Chip, r.Note = shell.Chip{Tone: "pending", Icon: "clock", Text: t("house.probing")}, t("house.since", "at", v.Clock.Moment(o.Since, v.Now))
	}
	if calls := o.Calls.Answered + o.Calls.Unanswered; calls > 0 && r.Note == "" {
		r.Note = t("house.calls", "answered", o.Calls.Answered, "all", calls, "ms", o.Calls.MeanLatency().Milliseconds())
	}
	if o.Case != "" {
		r.Note = strings.TrimPrefix(r.Note+" · "+o.Case, " · ")
	}
	return r
}

// todo is what the first admin ticks off. It is there until all of it is done.
func (v *visit) todo(p *housePage) error {
	if !v.Session.MayHouse(people.HousePeople) {
		return nil
	}
	colleagues, err := v.Console.People.Colleagues(v.R.Context(), nil)
	if err != nil {
		return err
	}
	rows := []todoRow{
		{Text: "todo.factor", Note: "todo.factor_note", Path: shell.Prefix + "/me", Done: v.Session.Person.HasFactor()},
		{Text: "todo.second", Note: "todo.second_note", Path: shell.Prefix + "/house/people", Done: len(colleagues) > 1},
		{Text: "todo.merchant", Note: "todo.merchant_note", Done: p.Status.Live.Clients > 0},
		{Text: "todo.operators", Note: "todo.operators_note", Done: len(p.Status.Live.Operators) > 0},
		{Text: "todo.proven", Note: "todo.proven_note", Done: p.Status.Verified != nil},
		{Text: "todo.https", Note: "todo.https_note", Done: v.Console.Secure},
	}
	v.setTodo(&p.todoList, "todo.title", rows)
	return nil
}
