package money

import (
	"net/url"
	"slices"
	"strings"

	"till"
	"till/collect"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/people"
	"till/story"
)

// subjectPage is a payment, a payout or a refund: what is going on, what happened, and
// what it is.
type subjectPage struct {
	*shell.Frame
	Kind     string // "payments", "payouts" or "refunds"
	Amount   till.Money
	State    shell.Chip
	Reason   string
	Going    subject.Going
	Moments  []*TimelineItem
	Tabs     []shell.Choice
	Facts    []shell.Fact
	Ids      []shell.Fact
	Document string
	Letter   string // to the operator
	Back     string
	Print    string
	Note     string // where one is written
	GiveBack string // where a payment is refunded
	Again    string
	Reveal   string // the address that shows the whole phone; "": the person may not, or it is shown
	Whole    bool   // the whole phone is shown, in this view only
}

// payment is GET /c/{client}/payments/{id}.
func (v *visit) payment() error { return v.subject(till.SubjectPayment, "payments", false) }

// payout is GET /c/{client}/payouts/{id}.
func (v *visit) payout() error { return v.subject(till.SubjectPayout, "payouts", false) }

// shownRefund is GET /c/{client}/refunds/{id}.
func (v *visit) shownRefund() error { return v.subject(till.SubjectPayout, "refunds", false) }

// revealPayment is POST /c/{client}/payments/{id}/phone: the payment's page with
// the whole phone. The log says who looked.
func (v *visit) revealPayment() error {
	return v.reveal(till.SubjectPayment, "payments", people.PaymentsSee)
}

// revealPayout is POST /c/{client}/payouts/{id}/phone.
func (v *visit) revealPayout() error {
	return v.reveal(till.SubjectPayout, "payouts", people.WalletsSee)
}

// revealRefund is POST /c/{client}/refunds/{id}/phone.
func (v *visit) revealRefund() error {
	return v.reveal(till.SubjectPayout, "refunds", people.PaymentsSee)
}

func (v *visit) reveal(kind till.SubjectKind, list string, see people.Permission) error {
	if v.Grant = v.Session.May(v.Client, see); v.Grant == people.None {
		return &people.Refusal{Code: people.NotAllowed, Need: see}
	}
	return v.subject(kind, list, true)
}

// subject shows a payment or a payout.
func (v *visit) subject(kind till.SubjectKind, list string, whole bool) error {
	ref, err := v.Ref("id")
	if err != nil {
		return err
	}
	if ref.ID.Time() < v.Earliest() {
		return shell.ErrNoPage
	}
	history, told, err := subject.ReadStory(v.Visit, kind, ref)
	if err != nil {
		return err
	}
	noun := string(history.Subject.Noun)
	if noun+"s" != list { // a refund is no payout, nor the other way round
		return shell.ErrNoPage
	}
	if whole { // the row first: nobody sees a number without it
		if err := v.Console.People.NoteAct(v.R.Context(), v.Session, v.Client, people.Act{Action: "phone.reveal", Subject: ref.ID, Detail: "of a " + noun}); err != nil {
			return err
		}
	}
	p := &subjectPage{Kind: list, Amount: history.Subject.Amount, Back: v.cameFrom(v.ClientPath("/" + list)), Again: v.R.URL.RequestURI(), Whole: whole}
	if v.May(people.PhonesSee) && !whole {
		p.Reveal = v.ClientPath("/" + list + "/" + ref.ID.String() + "/phone")
	}
	name := history.Subject.Reference
	if name == "" {
		name = look.Money(v.Words.Lang(), history.Subject.Amount)
	}
	p.Frame = v.Frame(v.Words.T("subject."+noun, "name", name), "menu."+list)
	if history.Payment != nil {
		p.State, p.Reason = subject.PaymentChip(v.Visit, history.Payment)
	} else {
		p.State, p.Reason = subject.PayoutChip(v.Visit, history.Payout)
	}
	p.State.Big = true
	rate := 0
	if v.Console.SubmitRate != nil {
		rate = v.Console.SubmitRate(history.Subject.Connection, kind)
	}
	p.Going = subject.GoingOf(v.Visit, history, history.Why(rate), p.State.Tone)
	p.Moments = v.timeline(history, told)
	v.tabs(p)
	v.facts(p, history)
	p.Letter = v.letter(history)
	if history.Payment != nil && history.Payment.Credited() {
		p.Print = v.ClientPath("/payments/" + ref.ID.String() + "/receipt")
	}
	if v.mayGiveBack(history) {
		p.GiveBack = v.ClientPath("/payments/" + ref.ID.String() + "/refund")
	}
	if v.May(people.NotesWrite) {
		p.Note = v.ClientPath("/" + list + "/" + ref.ID.String() + "/note")
	}
	return v.Page("subject", p)
}

// mayGiveBack reports whether the person may give money of a payment back, and there is some.
func (v *visit) mayGiveBack(s *story.Story) bool {
	return s.Payment != nil && s.Payment.Credited() && s.ReversedAt.IsZero() && s.Sums.Left() > 0 && s.Sums.Refunding == 0 &&
		v.May(people.RefundsPropose) && v.May(people.RefundsApprove)
}

// cameFrom returns the list with the filters that the person came from, or else the
// list itself.
func (v *visit) cameFrom(list string) string {
	u, err := url.Parse(v.R.Referer())
	if err != nil || u.Path != list || u.Host != v.R.Host {
		return list
	}
	return shell.OwnPath(u.RequestURI())
}

// groups are the filters of the timeline, in the order of the page.
var groups = []story.Group{story.AboutAll, story.AboutOperator, story.AboutMoney, story.AboutWebhooks, story.AboutPeople}

// tabs fills in the filters of the timeline and keeps what the chosen one
// shows.
func (v *visit) tabs(p *subjectPage) {
	q := v.R.URL.Query()
	chosen := story.Group(q.Get("show"))
	if !slices.Contains(groups, chosen) {
		chosen = story.AboutAll
	}
	for _, g := range groups {
		path := strings.TrimSuffix(v.R.URL.Path, "/phone")
		if g != story.AboutAll {
			path += "?" + url.Values{"show": {string(g)}}.Encode()
		}
		p.Tabs = append(p.Tabs, shell.Choice{Text: v.Words.T("group." + string(g)), Path: path, Current: g == chosen})
	}
	if chosen != story.AboutAll {
		p.Moments = slices.DeleteFunc(p.Moments, func(m *TimelineItem) bool { return m.Group != chosen && m.Group != story.AboutAll })
	}
}

// facts fills in what the payment or payout is.
func (v *visit) facts(p *subjectPage, s *story.Story) {
	t, b := v.Words.T, &s.Subject
	money := func(minor int64) string {
		return look.Money(v.Words.Lang(), till.Money{Minor: minor, Currency: b.Amount.Currency})
	}
	fact := func(key, value string) *shell.Fact {
		if value == "" {
			return &shell.Fact{}
		}
		p.Facts = append(p.Facts, shell.Fact{Name: t("fact." + key), Value: value})
		return &p.Facts[len(p.Facts)-1]
	}
	party := fact("party_"+string(b.Noun), subject.MaskPhone(b.Phone))
	if party.Reveal = p.Reveal; p.Whole {
		party.Value = look.Phone(b.Phone)
	}
	fact("method", shell.MethodName(b.Method, b.Country))
	fact("connection", b.Connection)
	fact("reference", b.Reference)
	description, document := subject.ReadDocument(b.Document)
	fact("description", description)
	fact("amount", money(b.Amount.Minor))
	if s.Kind == till.SubjectPayment {
		if s.Payment.Credited() || !s.Payment.Status.Final() { // what failed brought nothing, and cost nothing
			if b.Fee != 0 {
				fact("fee", money(-b.Fee))
			}
			fact("net", money(b.Amount.Minor-b.Fee)).Strong = true
		}
		if back := s.Sums.Refunded + s.Sums.Late; back > 0 {
			fact("refunded", money(back))
		}
		if s.Sums.Refunding > 0 {
			fact("refunding", money(s.Sums.Refunding))
		}
	} else {
		if b.Fee != 0 {
			fact("fee", money(b.Fee))
		}
		fact("debit", money(b.Amount.Minor+b.Fee)).Strong = true
	}
	if of, _, ok := collect.AskOf(b.Document); ok && b.Noun == till.NounPayment {
		fact("of_checkout", "…"+tail(of)).Path = v.ClientPath("/checkouts/" + of.String())
	}
	if b.Noun == till.NounRefund {
		fact("of_payment", "…"+tail(b.PaymentID)).Path = v.ClientPath("/payments/" + b.PaymentID.String())
		fact("reason", v.refundReason(b.Reason))
	}
	fact("asked", v.Clock.DateTime(b.CreatedAt)).ISO = p.ISO(b.CreatedAt)
	fact("receipt", *b.ProviderReference)
	if d := *b.FailureDetail; d != nil {
		fact("code", strings.TrimSpace(d.ProviderCode+" "+d.ProviderMessage))
	}
	p.Document = document
	p.Ids = []shell.Fact{{Name: t("fact.id_" + string(b.Noun)), Value: b.Ref.ID.String()}, {Name: t("fact.key"), Value: b.IdempotencyKey}}
	if n := len(s.Attempts); n > 0 && !s.Attempts[0].Reference.IsZero() {
		p.Ids = append(p.Ids, shell.Fact{Name: t("fact.operator_reference"), Value: s.Attempts[n-1].Reference.String()})
	}
	if s.Step != nil && s.Step.Handle != "" {
		p.Ids = append(p.Ids, shell.Fact{Name: t("fact.handle"), Value: s.Step.Handle})
	}
}
