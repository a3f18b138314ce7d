package console

import (
	"net/url"
	"slices"
	"strings"

	"till"
	"till/books"
	"till/console/look"
	"till/people"
)

// subjectPage is a payment or a payout: what is going on, what happened, and
// what it is.
type subjectPage struct {
	*Frame
	Kind     string // "payments" or "payouts"
	Amount   till.Money
	State    Chip
	Reason   string
	Going    Going
	Moments  []*TimelineItem
	Tabs     []Choice
	Facts    []Fact
	Ids      []Fact
	Document string
	Letter   string // to the operator
	Back     string
	Print    string
	Note     string // where one is written
	Again    string
	Reveal   string // the address that shows the whole phone; "": the person may not, or it is shown
	Whole    bool   // the whole phone is shown, in this view only
}

// payment is GET /c/{client}/payments/{id}.
func (v *visit) payment() error { return v.subject(till.SubjectPayment, "payments", false) }

// payout is GET /c/{client}/payouts/{id}.
func (v *visit) payout() error { return v.subject(till.SubjectPayout, "payouts", false) }

// revealPayment is POST /c/{client}/payments/{id}/phone: the payment's page with
// the whole phone. The log says who looked.
func (v *visit) revealPayment() error {
	return v.reveal(till.SubjectPayment, "payments", people.PaymentsSee)
}

// revealPayout is POST /c/{client}/payouts/{id}/phone.
func (v *visit) revealPayout() error {
	return v.reveal(till.SubjectPayout, "payouts", people.WalletsSee)
}

func (v *visit) reveal(kind till.SubjectKind, list string, see people.Permission) error {
	if v.grant = v.session.May(v.client, see); v.grant == people.None {
		return &people.Refusal{Code: people.NotAllowed, Need: see}
	}
	return v.subject(kind, list, true)
}

// subject shows a payment or a payout.
func (v *visit) subject(kind till.SubjectKind, list string, whole bool) error {
	ref, err := v.ref("id")
	if err != nil {
		return err
	}
	if ref.ID.Time() < v.earliest() {
		return errNoPage
	}
	story, views, endpoints, err := v.readStory(kind, ref)
	if err != nil {
		return err
	}
	if whole { // the row first: nobody sees a number without it
		if err := v.k.People.NoteAct(v.r.Context(), v.session, v.client, people.Act{Action: "phone.reveal", Subject: ref.ID, Detail: "of a " + string(kind)}); err != nil {
			return err
		}
	}
	p := &subjectPage{Kind: list, Amount: story.Subject.Amount, Back: v.cameFrom(v.clientPath("/" + list)), Again: v.r.URL.RequestURI(), Whole: whole}
	if v.may(people.PhonesSee) && !whole {
		p.Reveal = v.clientPath("/" + list + "/" + ref.ID.String() + "/phone")
	}
	name := story.Subject.Reference
	if name == "" {
		name = look.Money(v.words.Lang(), story.Subject.Amount)
	}
	p.Frame = v.frame(v.words.T("subject."+string(kind), "name", name), "menu."+list)
	if story.Payment != nil {
		p.State, p.Reason = v.paymentChip(story.Payment)
	} else {
		p.State, p.Reason = v.payoutChip(story.Payout)
	}
	p.State.Big = true
	rate := 0
	if v.k.SubmitRate != nil {
		rate = v.k.SubmitRate(story.Subject.Connection, kind)
	}
	p.Going = v.going(story, story.Why(rate), p.State.Tone)
	p.Moments = v.timeline(story, views, endpoints)
	v.tabs(p)
	v.facts(p, story)
	p.Letter = v.letter(story)
	if story.Payment != nil && story.Payment.Credited() && v.may(people.Collect) {
		p.Print = v.clientPath("/payments/" + ref.ID.String() + "/receipt")
	}
	if v.may(people.NotesWrite) {
		p.Note = v.clientPath("/" + list + "/" + ref.ID.String() + "/note")
	}
	return v.page("subject", p)
}

// cameFrom returns the list with the filters that the person came from, or else the
// list itself.
func (v *visit) cameFrom(list string) string {
	u, err := url.Parse(v.r.Referer())
	if err != nil || u.Path != list || u.Host != v.r.Host {
		return list
	}
	return ownPath(u.RequestURI())
}

// groups are the filters of the timeline, in the order of the page.
var groups = []books.Group{books.AboutAll, books.AboutOperator, books.AboutMoney, books.AboutWebhooks, books.AboutPeople}

// tabs fills in the filters of the timeline and keeps what the chosen one
// shows.
func (v *visit) tabs(p *subjectPage) {
	q := v.r.URL.Query()
	chosen := books.Group(q.Get("show"))
	if !slices.Contains(groups, chosen) {
		chosen = books.AboutAll
	}
	for _, g := range groups {
		path := strings.TrimSuffix(v.r.URL.Path, "/phone")
		if g != books.AboutAll {
			path += "?" + url.Values{"show": {string(g)}}.Encode()
		}
		p.Tabs = append(p.Tabs, Choice{v.words.T("group." + string(g)), path, g == chosen})
	}
	if chosen != books.AboutAll {
		p.Moments = slices.DeleteFunc(p.Moments, func(m *TimelineItem) bool { return m.Group != chosen && m.Group != books.AboutAll })
	}
}

// facts fills in what the payment or payout is.
func (v *visit) facts(p *subjectPage, s *books.Story) {
	t, b := v.words.T, &s.Subject
	money := func(minor int64) string {
		return look.Money(v.words.Lang(), till.Money{Minor: minor, Currency: b.Amount.Currency})
	}
	fact := func(key, value string) *Fact {
		if value == "" {
			return &Fact{}
		}
		p.Facts = append(p.Facts, Fact{Name: t("fact." + key), Value: value})
		return &p.Facts[len(p.Facts)-1]
	}
	party := fact("party_"+string(s.Kind), maskPhone(b.Phone))
	if party.Reveal = p.Reveal; p.Whole {
		party.Value = look.Phone(b.Phone)
	}
	fact("method", methodName(b.Method, b.Country))
	fact("connection", b.Connection)
	fact("reference", b.Reference)
	description, document := readDocument(b.Document)
	fact("description", description)
	fact("amount", money(b.Amount.Minor))
	if s.Kind == till.SubjectPayment {
		if b.Fee != 0 {
			fact("fee", money(-b.Fee))
		}
		fact("net", money(b.Amount.Minor-b.Fee)).Strong = true
	} else {
		if b.Fee != 0 {
			fact("fee", money(b.Fee))
		}
		fact("debit", money(b.Amount.Minor+b.Fee)).Strong = true
	}
	fact("asked", v.clock.DateTime(b.CreatedAt)).ISO = p.ISO(b.CreatedAt)
	fact("receipt", *b.ProviderReference)
	if d := *b.FailureDetail; d != nil {
		fact("code", strings.TrimSpace(d.ProviderCode+" "+d.ProviderMessage))
	}
	p.Document = document
	p.Ids = []Fact{{Name: t("fact.id_" + string(s.Kind)), Value: b.Ref.ID.String()}, {Name: t("fact.key"), Value: b.IdempotencyKey}}
	if n := len(s.Attempts); n > 0 && !s.Attempts[0].Reference.IsZero() {
		p.Ids = append(p.Ids, Fact{Name: t("fact.operator_reference"), Value: s.Attempts[n-1].Reference.String()})
	}
	if s.Step != nil && s.Step.Handle != "" {
		p.Ids = append(p.Ids, Fact{Name: t("fact.handle"), Value: s.Step.Handle})
	}
}
