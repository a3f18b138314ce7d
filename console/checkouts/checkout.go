package checkouts

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"till"
	"till/checkout"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/console/words"
	"till/internal/qrcode"
	"till/people"
	"till/store"
	"till/store/access"
	"till/store/auditlog"
	"till/store/checkouts"
)

// checkoutPage is one checkout: what is going on, its address, its asks and what it is.
type checkoutPage struct {
	*shell.Frame
	Again    string
	Back     string
	Amount   till.Money
	State    shell.Chip
	Going    subject.Going
	GiveBack string // where the payment that is too much is refunded
	Hand     *handing
	NoPage   []string // why nobody can open it: what is wrong, and who can mend it
	Asks     []*askLine
	Facts    []shell.Fact
	Ids      []shell.Fact
	Cancel   string // where it is ended; "": it is over, or the person may not
	Refused  string
}

// handing is an address that people hand on.
type handing struct {
	URL  string
	QR   shell.Block
	Text string // to send on, in the customer's language
}

// askLine is an ask as people read it.
type askLine struct {
	N      int
	At     till.Time
	Time   string
	Phone  string // masked
	Method string
	State  shell.Chip
	Why    string
	Path   string // of its payment; "": it has none
}

// The acts on a checkout.
const (
	actCreate = "checkout.create"
	actCancel = "checkout.cancel"
)

// maxActs is how many acts are read, the newest: of a checkout one makes it and one ends it.
const maxActs = 50

// seen is what is read of a checkout.
type seen struct {
	row  *checkouts.Row
	asks []*asked
	acts acts
}

// acts are what others than the engine did to something, newest first, with the names of the
// keys that did it.
type acts struct {
	rows []*store.AuditRow
	told *subject.Told
}

func readActs(ctx context.Context, tx *store.Tx, ref store.Ref) (a acts, err error) {
	a.told = &subject.Told{Keys: map[string]string{}}
	if a.rows, err = auditlog.ActsOn(ctx, tx, ref, maxActs); err != nil {
		return a, err
	}
	for _, row := range a.rows {
		if id, key := strings.CutPrefix(row.Actor, "api:"); key {
			k, err := access.Key(ctx, tx, ref.Client, id)
			if err != nil {
				return a, err
			}
			if k != nil {
				a.told.Keys[id] = k.Name
			}
		}
	}
	return a, nil
}

// read reads the checkout of the path.
func (v *visit) read() (*seen, error) {
	ref, err := v.Ref("id")
	if err != nil {
		return nil, err
	}
	s := &seen{}
	err = v.View(func(ctx context.Context, tx *store.Tx) error {
		if s.row, err = checkouts.Get(ctx, tx, ref); err != nil {
			return err
		}
		all, err := readAsks(ctx, tx, []store.Ref{ref})
		if err != nil {
			return err
		}
		s.asks = all[ref]
		s.acts, err = readActs(ctx, tx, ref)
		return err
	})
	if till.ErrorCode(err) == till.CodeCheckoutNotFound || err == nil && ref.ID.Time() < v.Earliest() {
		return nil, shell.ErrNoPage
	}
	return s, err
}

// checkout is GET /c/{client}/checkouts/{id}.
func (v *visit) checkout() error {
	s, err := v.read()
	if err != nil {
		return err
	}
	p, err := v.newPage(s)
	if err != nil {
		return err
	}
	return v.Page("checkout", p)
}

func (v *visit) newPage(s *seen) (*checkoutPage, error) {
	row := s.row
	stands, about := v.situation(row, s.asks).look()
	name := row.Reference
	if name == "" {
		name = look.Money(v.Words.Lang(), row.Amount)
	}
	p := &checkoutPage{Frame: v.Frame(v.Words.T("checkouts.one", "name", name), "menu.checkouts"), Amount: row.Amount, State: v.chip(stands),
		Again: v.ClientPath("/checkouts/" + row.ID.String()), Back: v.cameFrom(v.ClientPath("/checkouts"))}
	p.State.Big = true
	p.Going = v.going(s, stands, about)
	if stands.tooMuch() && v.May(people.RefundsPropose) && v.May(people.RefundsApprove) && about.left() {
		p.GiveBack = v.ClientPath("/payments/"+about.PaymentID.String()+"/refund") + "?reason=" + map[stand]string{twice: "duplicate", late: "late_payment"}[stands]
	}
	if stands.open() || stands == unsent {
		var err error
		if p.NoPage, err = v.barred(); err != nil {
			return nil, err
		}
		if p.NoPage == nil {
			if p.Hand, err = v.handing(row); err != nil {
				return nil, err
			}
		}
	}
	if stands.mayEnd() && v.May(people.LinksManage) {
		p.Cancel = p.Again + "/cancel"
	}
	for i := range s.asks {
		p.Asks = append(p.Asks, v.askLine(s.asks[i]))
	}
	slices.Reverse(p.Asks)
	v.facts(p, s)
	return p, nil
}

// cameFrom returns the list with the filters that the person came from, or else the list.
func (v *visit) cameFrom(list string) string {
	u, err := url.Parse(v.R.Referer())
	if err != nil || u.Path != list || u.Host != v.R.Host {
		return list
	}
	return shell.OwnPath(u.RequestURI())
}

// barred says why nobody can open pages of the merchant, and who can mend it; nil: they can.
func (v *visit) barred() ([]string, error) {
	if !v.Console.Checkouts.HasPages() {
		return []string{v.Words.T("checkouts.no_pages"), v.Words.T("checkouts.no_pages_do")}, nil
	}
	if v.shownName() == "" {
		rule := checkout.CheckName(v.Client.Name)
		return []string{v.Words.T("checkouts.name_" + string(rule)), v.Words.T("checkouts.name_do", "name", v.Client.Name)}, nil
	}
	off := false
	err := v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		off, err = checkouts.Off(ctx, tx, v.Client.ID)
		return err
	})
	if err != nil || !off {
		return nil, err
	}
	return []string{v.Words.T("checkouts.pages_off"), v.Words.T("checkouts.pages_off_do")}, nil
}

// shownName returns the merchant's name as pages show it, "" if they show none.
func (v *visit) shownName() string {
	return checkout.NameOnPages(v.Client.Name, v.Profile.PayName)
}

// handing returns the address as it is handed on.
func (v *visit) handing(row *checkouts.Row) (*handing, error) {
	lang, clock := v.customerLook(row.Language)
	w := words.For(lang)
	lines := []string{v.shownName(), look.MoneyInUse(lang, row.Amount)}
	if what := cmp.Or(checkout.Description(&row.Checkout), row.Reference); what != "" {
		lines = append(lines, what)
	}
	url := v.Console.Checkouts.URL(&row.Checkout)
	return v.handingOf(url, append(lines, w.T("checkouts.text_pay", "url", url), w.T("checkouts.text_until", "t", clock.DateTime(row.ExpiresAt)+" "+clock.Offset(row.ExpiresAt))))
}

// handingOf returns an address with its code, in capitals, which take a quarter less room, and
// the lines of the text to send on.
func (v *visit) handingOf(url string, lines []string) (*handing, error) {
	svg, err := qrcode.SVG(strings.ToUpper(url), v.Words.T("checkouts.qr"))
	return &handing{URL: url, QR: shell.Block(svg), Text: strings.Join(lines, "\n")}, err // the code is our own drawing
}

// going says in a sentence how a checkout stands, and what is to be done.
func (v *visit) going(s *seen, stands stand, a *asked) subject.Going {
	t := v.Words.T
	at := func(at till.Time) string { return v.Clock.Moment(at, v.Now) }
	args := []any{"a", s.row.Amount, "until", at(s.row.ExpiresAt), "end", at(s.row.UpdatedAt)}
	if a != nil {
		args = append(args, "n", int64(a.N), "phone", subject.MaskPhone(a.Phone), "t", at(a.AskedAt), "op", shell.MethodName(a.Method, ""))
		if a.payment != nil {
			args = append(args, "came", at(cameAt(s.row, a)))
		}
	}
	g := subject.Going{Tone: looks[stands].Tone, Say: t("checkouts.say_"+string(stands), args...)}
	if key := "checkouts.more_" + string(stands); v.Words.Has(key) {
		g.More = t(key, args...)
	}
	if stands == tried || stands == spent {
		g.More = v.whyNot(a) + " " + g.More
	}
	if stands == cancelled {
		if who := s.acts.by(v, actCancel); who != "" {
			g.Say = t("checkouts.say_cancelled_by", "end", at(s.row.UpdatedAt), "who", who)
		}
	}
	if key := "checkouts.next_" + string(stands); v.Words.Has(key) && (stands != untried || s.row.LinkID.IsZero()) { // who opened a link has the address
		g.Next = t(key, args...)
	}
	return g
}

// cameAt returns when the money of an ask came: the checkout knows it of the first.
func cameAt(row *checkouts.Row, a *asked) till.Time {
	switch {
	case row.PaymentID == a.PaymentID && !row.PaidAt.IsZero():
		return row.PaidAt
	case !a.payment.LateSuccessAt.IsZero():
		return a.payment.LateSuccessAt
	}
	return a.payment.UpdatedAt
}

// whyNot says why the last ask brought no money.
func (v *visit) whyNot(a *asked) string {
	if a.payment == nil || a.payment.FailureReason == "" {
		return v.Words.T("checkouts.why_refused")
	}
	return v.Words.T("checkouts.why", "reason", subject.Reason(v.Visit, a.payment.FailureReason))
}

// by names who did an act; "": nobody did it in a way that is known.
func (a *acts) by(v *visit, action string) string {
	for _, row := range a.rows {
		if row.Action == action {
			return a.told.Who(v.Visit, row.Actor)
		}
	}
	return ""
}

// askLine puts an ask into words.
func (v *visit) askLine(a *asked) *askLine {
	l := &askLine{N: a.N, At: a.AskedAt, Time: v.Clock.Moment(a.AskedAt, v.Now), Phone: subject.MaskPhone(a.Phone), Method: shell.MethodName(a.Method, a.Country)}
	switch {
	case a.payment != nil:
		l.State, l.Why = subject.PaymentChip(v.Visit, a.payment)
		l.Path = v.ClientPath("/payments/" + a.PaymentID.String())
	case a.Refused != "":
		l.State, l.Why = shell.Chip{Tone: "ended", Icon: "bar", Text: v.Words.T("checkouts.ask_refused")}, v.Words.T("checkouts.ask_refused_why")
	default:
		l.State = shell.Chip{Tone: "pending", Icon: "clock", Text: v.Words.T("checkouts.ask_unsent")}
	}
	return l
}

// facts fills in what the checkout is.
func (v *visit) facts(p *checkoutPage, s *seen) {
	t, row := v.Words.T, s.row
	fact := func(key, value string) *shell.Fact {
		if value == "" {
			return &shell.Fact{}
		}
		p.Facts = append(p.Facts, shell.Fact{Name: t("fact." + key), Value: value})
		return &p.Facts[len(p.Facts)-1]
	}
	date := func(at till.Time) string {
		if at.IsZero() {
			return ""
		}
		return v.Clock.DateTime(at)
	}
	fact("reference", row.Reference)
	fact("description", checkout.Description(&row.Checkout))
	fact("amount", look.Money(v.Words.Lang(), row.Amount)).Strong = true
	fact("made", date(row.CreatedAt)).ISO = p.ISO(row.CreatedAt)
	switch who := s.acts.by(v, actCreate); {
	case !row.LinkID.IsZero():
		fact("made_by", t("checkouts.by_customer"))
		fact("of_link", "…"+row.LinkID.String()[28:]).Path = v.ClientPath("/links/" + row.LinkID.String())
	case who != "":
		fact("made_by", who)
	default:
		fact("made_by", t("checkouts.by_key"))
	}
	fact("until", date(row.ExpiresAt)).ISO = p.ISO(row.ExpiresAt)
	fact("paid_at", date(row.PaidAt)).ISO = p.ISO(row.PaidAt)
	switch {
	case row.Phone == "":
	case row.PhoneFixed:
		fact("phone_fixed", subject.MaskPhone(row.Phone))
	default:
		fact("phone_known", subject.MaskPhone(row.Phone))
	}
	fact("only_country", row.Country)
	fact("only_methods", methodNames(row.Methods))
	fact("way_back", subject.HostOf(row.ReturnURL))
	p.Ids = []shell.Fact{{Name: t("fact.id_checkout"), Value: row.ID.String()}, {Name: t("fact.key"), Value: row.IdempotencyKey}}
}

// methodNames returns methods as people call them.
func methodNames(codes []string) string {
	var names []string
	for _, m := range codes {
		names = append(names, shell.MethodName(m, ""))
	}
	return strings.Join(names, ", ")
}

// postCancel is POST /c/{client}/checkouts/{id}/cancel.
func (v *visit) postCancel() error {
	if v.Grant = v.Session.May(v.Client, people.PaymentsSee); v.Grant == people.None {
		return &people.Refusal{Code: people.NotAllowed, Need: people.PaymentsSee}
	}
	s, err := v.read()
	if err != nil {
		return err
	}
	_, _, err = v.Console.Checkouts.Cancel(v.R.Context(), s.row.Ref(), v.Session.Actor())
	if till.ErrorCode(err) != till.CodeCheckoutLive {
		return v.Back(v.ClientPath("/checkouts/"+s.row.ID.String()), "checkout_cancelled", err)
	}
	if s, err = v.read(); err != nil { // as it is now
		return err
	}
	p, err := v.newPage(s)
	if err != nil {
		return err
	}
	p.Refused = v.Words.T("checkouts.cancel_live")
	v.Render(http.StatusConflict, "checkout", p)
	return nil
}
