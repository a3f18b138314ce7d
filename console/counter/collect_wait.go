package counter

import (
	"context"
	"slices"
	"strconv"
	"time"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/people"
	"till/store"
	"till/store/lookup"
	"till/story"
)

// waitPage is what became of a request at the counter: it waits, it is paid, or
// it ended otherwise.
type waitPage struct {
	*shell.Frame
	Again    string
	Amount   till.Money
	Phone    string // whole while it waits, for the person who typed it
	State    shell.Chip
	Reason   string
	Going    subject.Going
	Wallet   string // the method, as people call it
	Asking   bool   // it was only just made
	Waiting  bool   // the customer has the prompt, in time
	Left     int    // hundredths of the customer's time
	LeftText string // 4:12
	Window   int64  // the customer's time, in seconds
	Paid     bool
	Ended    bool // it failed or expired: one may ask again
	Facts    []shell.Fact
	Today    []string
	Receipt  string
	Share    string // the receipt as a text
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
	ref, err := v.Ref("id")
	if err != nil {
		return err
	}
	if ref.ID.Time() < v.earliestPayment() {
		return shell.ErrNoPage
	}
	var history *story.Story
	var person till.ID
	var sums []lookup.CollectedSum
	err = v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		if history, err = story.ReadStory(ctx, tx, till.SubjectPayment, ref); err != nil {
			return err
		}
		if person, err = v.collectorOf(ctx, tx, history.Payment); err != nil || person != v.Session.Person.ID || !history.Payment.Credited() {
			return err
		}
		sums, err = lookup.CollectedSums(ctx, tx, v.Client.ID, person, v.Clock.StartOfDay(v.Now, 0))
		return err
	})
	if err != nil {
		return err
	}
	if person.IsZero() {
		return v.Redirect(v.ClientPath("/payments/" + ref.ID.String()))
	}
	return v.showWait(history, person == v.Session.Person.ID, sums)
}

func (v *visit) showWait(history *story.Story, own bool, sums []lookup.CollectedSum) error {
	pay := history.Payment
	id := pay.ID.String()
	p := &waitPage{Again: v.ClientPath("/collect/" + id), Amount: pay.Amount, Phone: subject.MaskPhone(pay.Phone), Wallet: shell.MethodName(pay.Method, ""),
		Mine: v.ClientPath("/collect/mine"), Payment: v.ClientPath("/payments/" + id)}
	p.State, p.Reason = subject.PaymentChip(v.Visit, pay)
	p.State.Big = true
	p.Frame = v.Frame(p.State.Text+" "+look.Money(v.Words.Lang(), pay.Amount), "menu.collect")
	p.Modules = append(p.Modules, "counter.js")
	rate := 0
	if v.Console.SubmitRate != nil {
		rate = v.Console.SubmitRate(pay.Connection, till.SubjectPayment)
	}
	why := history.Why(rate)
	p.Going = subject.GoingOf(v.Visit, history, why, p.State.Tone)
	p.Paid = pay.Credited() && pay.ReversedAt.IsZero()
	p.Ended = pay.Status.Final() && !pay.Credited() && !pay.Attention
	p.Asking = !pay.Status.Final() && why.Next != story.Customer && v.Now.Sub(pay.CreatedAt) < askingTime
	p.Waiting = why.Code == story.WhyWaiting && v.Now < why.Until
	if p.Waiting {
		left := why.Until.Sub(v.Now)
		p.Left, p.LeftText, p.Window = ringOf(left, pay.ApprovalWindow), clockOf(left), int64(pay.ApprovalWindow/time.Second)
	}
	if own && !pay.Status.Final() {
		p.Phone = look.Phone(pay.Phone)
	}
	if p.Ended && own {
		p.AskAgain = v.ClientPath("/collect?again=" + id)
	}
	if pay.Credited() {
		v.paidFacts(p, history)
		p.Receipt = v.ClientPath("/payments/" + id + "/receipt")
		r := &receiptPage{Frame: p.Frame}
		v.fillReceipt(r, history)
		p.Share = r.Message()
	}
	for _, s := range sums {
		p.Today = append(p.Today, v.Words.T("collect.today", "n", s.Payments, "amount", s.Amount))
	}
	return v.Page("collected", p)
}

// paidFacts fills in what a cashier says to the customer.
func (v *visit) paidFacts(p *waitPage, s *story.Story) {
	t, pay := v.Words.T, s.Payment
	add := func(name, value string) *shell.Fact {
		if value == "" {
			return &shell.Fact{}
		}
		p.Facts = append(p.Facts, shell.Fact{Name: name, Value: value})
		return &p.Facts[len(p.Facts)-1]
	}
	add(t("fact.party_payment"), subject.MaskPhone(pay.Phone))
	add(t("fact.method"), shell.MethodName(pay.Method, pay.Country))
	add(t("fact.reference"), pay.Reference)
	add(t("fact.receipt"), pay.ProviderReference)
	at := subject.PaidAt(s)
	add(t("receipt.date"), v.Clock.DateTime(at)).ISO = at.Std().Format(time.RFC3339)
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
	Lines []*subject.Line
	Open  int // that have not ended
	Today []string
	Path  string
}

// readMine reads what a person collected.
func (v *visit) readMine(person till.ID, limit int) (*minePart, error) {
	m := &minePart{Path: v.ClientPath("/collect/mine")}
	err := v.View(func(ctx context.Context, tx *store.Tx) error {
		rows, err := lookup.CollectedBy(ctx, tx, v.Client.ID, person, v.Now.Add(-people.RecentWindow), maxMine)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if !r.Status.Final() {
				m.Open++
			}
		}
		m.Lines = subject.PaymentLines(v.Visit, rows[:min(limit, len(rows))])
		for _, l := range m.Lines {
			l.Path = v.ClientPath("/collect/" + l.ID)
		}
		sums, err := lookup.CollectedSums(ctx, tx, v.Client.ID, person, v.Clock.StartOfDay(v.Now, 0))
		for _, s := range sums {
			m.Today = append(m.Today, v.Words.T("collect.today", "n", s.Payments, "amount", s.Amount))
		}
		return err
	})
	return m, err
}

// minePage lists a person's collections of the last two days.
type minePage struct {
	*shell.Frame
	*minePart
	Kind    string
	Again   string
	Who     string         // "": one's own
	People  []shell.Choice // whose the person may see
	Only    bool           // the open ones
	OpenTab []shell.Choice
	Collect string
}

// mine is GET /c/{client}/collect/mine. Who may read the audit log sees each
// cashier's.
func (v *visit) mine() error {
	p := &minePage{Frame: v.Frame(v.Words.T("mine.title"), "menu.collect"), Kind: "payments", Again: v.R.URL.RequestURI(), Collect: v.ClientPath("/collect"),
		Only: v.R.URL.Query().Get("open") == "1"}
	person, base := v.Session.Person.ID, v.ClientPath("/collect/mine")
	if v.May(people.AuditSee) {
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
		p.Lines = slices.DeleteFunc(p.Lines, func(l *subject.Line) bool { return l.Final })
		subject.SetDays(v.Visit, p.Lines)
	}
	who := ""
	if person != v.Session.Person.ID {
		who = "who=" + person.String()
	}
	p.OpenTab = []shell.Choice{{Text: v.Words.T("mine.all"), Path: address(base, who), Current: !p.Only}, {Text: v.Words.T("mine.open"), Path: address(base, "open=1", who), Current: p.Only}}
	return v.Page("mine", p)
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
	person := v.Session.Person.ID
	all, err := v.Console.People.Colleagues(v.R.Context(), v.Client)
	if err != nil {
		return person, err
	}
	chosen, _ := till.ParseID(v.R.URL.Query().Get("who")) // none if it is not an id
	for _, c := range all {
		if _, desk := people.RuleOf(people.Collect).Grants[c.Role]; !desk {
			continue
		}
		path := address(base, "who="+c.Person.ID.String())
		if c.Person.ID == v.Session.Person.ID {
			path = base
		}
		if c.Person.ID == chosen && chosen != person {
			person, p.Who = chosen, c.Person.Name
		}
		p.People = append(p.People, shell.Choice{Text: c.Person.Name, Path: path})
	}
	for i := range p.People {
		p.People[i].Current = p.Who != "" && p.People[i].Text == p.Who || p.Who == "" && p.People[i].Path == base
	}
	return person, nil
}
