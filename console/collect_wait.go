package console

import (
	"context"
	"slices"
	"strconv"
	"time"

	"till"
	"till/books"
	"till/console/look"
	"till/people"
	"till/store"
)

// waitPage is what became of a request at the counter: it waits, it is paid, or
// it ended otherwise.
type waitPage struct {
	*Frame
	Again    string
	Amount   till.Money
	Phone    string // whole while it waits, for whoever typed it
	State    Chip
	Reason   string
	Going    Going
	Wallet   string // the method, as people call it
	Asking   bool   // it was only just made
	Waiting  bool   // the customer has the prompt, in time
	Left     int    // hundredths of the customer's time
	LeftText string // 4:12
	Window   int64  // the customer's time, in seconds
	Paid     bool
	Ended    bool // it failed or expired: one may ask again
	Facts    []Fact
	Today    []string
	Receipt  string
	AskAgain string
	Mine     string
	Payment  string
}

// askingTime is how long the page says that the operator is being asked before it
// says that something is not as it should be.
const askingTime = 10 * time.Second

// collected is GET /c/{client}/collect/{id}: the answer page of a request. What
// was not asked for at the counter has its own page.
func (v *visit) collected() error {
	ref, err := v.ref("id")
	if err != nil {
		return err
	}
	if ref.ID.Time() < v.earliestPayment() {
		return errNoPage
	}
	var story *books.Story
	var person till.ID
	var sums []store.DeskSum
	err = v.view(func(ctx context.Context, tx *store.Tx) (err error) {
		if story, err = books.ReadStory(ctx, tx, till.SubjectPayment, ref); err != nil {
			return err
		}
		if person, err = v.deskPerson(ctx, tx, story.Payment); err != nil || person != v.session.Person.ID || !story.Payment.Credited() {
			return err
		}
		sums, err = tx.DeskSums(ctx, v.client.ID, person, v.clock.StartOfDay(v.now, 0))
		return err
	})
	if err != nil {
		return err
	}
	if person.IsZero() {
		return v.redirect(v.clientPath("/payments/" + ref.ID.String()))
	}
	return v.showWait(story, person == v.session.Person.ID, sums)
}

func (v *visit) showWait(story *books.Story, own bool, sums []store.DeskSum) error {
	pay := story.Payment
	id := pay.ID.String()
	p := &waitPage{Again: v.clientPath("/collect/" + id), Amount: pay.Amount, Phone: maskPhone(pay.Phone), Wallet: methodName(pay.Method, ""),
		Mine: v.clientPath("/collect/mine"), Payment: v.clientPath("/payments/" + id)}
	p.State, p.Reason = v.paymentChip(pay)
	p.State.Big = true
	p.Frame = v.frame(p.State.Text+" "+look.Money(v.words.Lang(), pay.Amount), "menu.collect")
	p.Modules = append(p.Modules, "counter.js")
	rate := 0
	if v.k.SubmitRate != nil {
		rate = v.k.SubmitRate(pay.Connection, till.SubjectPayment)
	}
	why := story.Why(rate)
	p.Going = v.going(story, why, p.State.Tone)
	p.Paid = pay.Credited() && pay.ReversedAt.IsZero()
	p.Ended = pay.Status.Final() && !pay.Credited() && !pay.Attention
	p.Asking = !pay.Status.Final() && why.Next != books.Customer && v.now.Sub(pay.CreatedAt) < askingTime
	p.Waiting = why.Code == books.WhyWaiting && v.now < why.Until
	if p.Waiting {
		left := why.Until.Sub(v.now)
		p.Left, p.LeftText, p.Window = ringOf(left, pay.ApprovalWindow), clockOf(left), int64(pay.ApprovalWindow/time.Second)
	}
	if own && !pay.Status.Final() {
		p.Phone = look.Phone(pay.Phone)
	}
	if p.Ended && own {
		p.AskAgain = v.clientPath("/collect?again=" + id)
	}
	if pay.Credited() {
		v.paidFacts(p, story)
		p.Receipt = v.clientPath("/payments/" + id + "/receipt")
	}
	for _, s := range sums {
		p.Today = append(p.Today, v.words.T("collect.today", "n", s.Payments, "amount", s.Amount))
	}
	return v.page("collected", p)
}

// paidFacts fills in what a cashier tells the customer.
func (v *visit) paidFacts(p *waitPage, s *books.Story) {
	t, pay := v.words.T, s.Payment
	add := func(name, value string) *Fact {
		if value == "" {
			return &Fact{}
		}
		p.Facts = append(p.Facts, Fact{Name: name, Value: value})
		return &p.Facts[len(p.Facts)-1]
	}
	add(t("fact.party_payment"), maskPhone(pay.Phone))
	add(t("fact.method"), methodName(pay.Method, pay.Country))
	add(t("fact.reference"), pay.Reference)
	add(t("fact.receipt"), pay.ProviderReference)
	at := paidAt(s)
	add(t("receipt.date"), v.clock.DateTime(at)).ISO = at.Std().Format(time.RFC3339)
}

// ringOf returns how many hundredths of a whole are left.
func ringOf(left, whole time.Duration) int {
	if whole <= 0 {
		return 0
	}
	return int(max(0, min(100, left*100/whole)))
}

// clockOf returns minutes and seconds: 4:12.
func clockOf(left time.Duration) string {
	s := int(max(0, left) / time.Second)
	seconds := strconv.Itoa(s % 60)
	if len(seconds) == 1 {
		seconds = "0" + seconds
	}
	return strconv.Itoa(s/60) + ":" + seconds
}

// How many of a person's collections are shown: beside the form, and on their
// own page.
const (
	recentMine = 8
	maxMine    = 200
)

// minePart is what a person collected in the last two days.
type minePart struct {
	Lines []*Line
	Open  int // that have not ended
	Today []string
	Path  string
}

// readMine reads what a person collected.
func (v *visit) readMine(person till.ID, limit int) (*minePart, error) {
	m := &minePart{Path: v.clientPath("/collect/mine")}
	err := v.view(func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.DeskPayments(ctx, v.client.ID, person, v.now.Add(-people.RecentWindow), maxMine)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if !r.Status.Final() {
				m.Open++
			}
		}
		m.Lines = v.paymentLines(rows[:min(limit, len(rows))])
		for _, l := range m.Lines {
			l.Path = v.clientPath("/collect/" + l.ID)
		}
		sums, err := tx.DeskSums(ctx, v.client.ID, person, v.clock.StartOfDay(v.now, 0))
		for _, s := range sums {
			m.Today = append(m.Today, v.words.T("collect.today", "n", s.Payments, "amount", s.Amount))
		}
		return err
	})
	return m, err
}

// minePage lists a person's collections of the last two days.
type minePage struct {
	*Frame
	*minePart
	Kind    string
	Again   string
	Who     string   // "": one's own
	People  []Choice // whose the person may look at
	Only    bool     // the open ones
	OpenTab []Choice
	Collect string
}

// mine is GET /c/{client}/collect/mine. Whoever may read the audit log sees each
// cashier's.
func (v *visit) mine() error {
	p := &minePage{Frame: v.frame(v.words.T("mine.title"), "menu.collect"), Kind: "payments", Again: v.r.URL.RequestURI(), Collect: v.clientPath("/collect"),
		Only: v.r.URL.Query().Get("open") == "1"}
	person, base := v.session.Person.ID, v.clientPath("/collect/mine")
	if v.may(people.AuditSee) {
		var err error
		if person, err = v.cashiers(p, base); err != nil {
			return err
		}
	}
	var err error
	if p.minePart, err = v.readMine(person, maxMine); err != nil {
		return err
	}
	if p.Only {
		p.Lines = slices.DeleteFunc(p.Lines, func(l *Line) bool { return l.Final })
		v.setDays(p.Lines)
	}
	who := ""
	if person != v.session.Person.ID {
		who = "who=" + person.String()
	}
	p.OpenTab = []Choice{{v.words.T("mine.all"), address(base, who), !p.Only}, {v.words.T("mine.open"), address(base, "open=1", who), p.Only}}
	return v.page("mine", p)
}

func address(base string, parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	for i, s := range parts {
		base += map[bool]string{true: "?", false: "&"}[i == 0] + s
	}
	return base
}

// cashiers fills in whose collections can be looked at, and returns the chosen
// person.
func (v *visit) cashiers(p *minePage, base string) (till.ID, error) {
	person := v.session.Person.ID
	all, err := v.k.People.Colleagues(v.r.Context(), v.client)
	if err != nil {
		return person, err
	}
	chosen, _ := till.ParseID(v.r.URL.Query().Get("who")) // none if it is not an id
	for _, c := range all {
		if _, desk := people.RuleOf(people.Collect).Grants[c.Role]; !desk {
			continue
		}
		path := address(base, "who="+c.Person.ID.String())
		if c.Person.ID == v.session.Person.ID {
			path = base
		}
		if c.Person.ID == chosen && chosen != person {
			person, p.Who = chosen, c.Person.Name
		}
		p.People = append(p.People, Choice{Text: c.Person.Name, Path: path})
	}
	for i := range p.People {
		p.People[i].Current = p.Who != "" && p.People[i].Text == p.Who || p.Who == "" && p.People[i].Path == base
	}
	return person, nil
}
