package checkouts

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"till"
	"till/checkout"
	"till/console/list"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/console/words"
	"till/people"
	"till/store"
	"till/store/checkouts"
)

// linksPage is a list of links.
type linksPage struct {
	*shell.Frame
	Filter *list.Filter
	States []shell.Choice
	Lines  []*linkLine
	Total  int64
	Pages  *list.Pages
	New    string
	Never  bool
}

// linkLine is a row of the list.
type linkLine struct {
	ID     string
	Path   string
	Name   string
	Amount string
	State  shell.Chip
	Made   string
	At     till.Time
}

// The states of a link, as filters name them.
const (
	linkOn  = "on"
	linkOff = "off"
)

// links is GET /c/{client}/links.
func (v *visit) links() error {
	f := list.ReadWith(v.Visit, v.ClientPath("/links"), []string{linkOn, linkOff}, "all")
	p := &linksPage{Frame: v.Frame(v.Words.T("menu.links"), "menu.links"), Filter: f}
	filter := checkouts.LinkFilter{}
	if on := f.State == linkOn; f.State != "" {
		filter.Active = &on
	}
	all, total, err := v.Console.Checkouts.Links(v.R.Context(), v.Client.ID, filter, store.Page{Limit: list.PageSize, Offset: (f.Page - 1) * list.PageSize})
	if err != nil {
		return err
	}
	for _, l := range all {
		line := &linkLine{ID: l.ID.String(), Path: v.ClientPath("/links/" + l.ID.String()), Name: l.Title, Amount: v.linkAmount(l), State: v.linkChip(l), Made: v.Clock.Date(l.CreatedAt), At: l.CreatedAt}
		p.Lines = append(p.Lines, line)
	}
	p.Total, p.Pages, p.Never = total, list.PagesOf(v.Visit, f, total), total == 0 && f.State == ""
	if v.May(people.LinksManage) {
		p.New = v.ClientPath("/links/new")
	}
	for _, s := range []string{"", linkOn, linkOff} {
		name := v.Words.T("list.all")
		if s != "" {
			name = v.Words.T("links.state_" + s)
		}
		p.States = append(p.States, shell.Choice{Text: name, Path: f.Address("state", s), Current: f.State == s})
	}
	return v.Page("links", p)
}

// linkAmount says what is paid on a link.
func (v *visit) linkAmount(l *till.Link) string {
	money := func(minor int64) string {
		return look.Money(v.Words.Lang(), till.Money{Minor: minor, Currency: l.Amount.Currency})
	}
	switch {
	case !l.Open():
		return money(l.Amount.Minor)
	case l.Min > 0 && l.Max > 0:
		return v.Words.T("links.amount_between", "min", money(l.Min), "max", money(l.Max))
	case l.Min > 0:
		return v.Words.T("links.amount_from", "min", money(l.Min))
	case l.Max > 0:
		return v.Words.T("links.amount_to", "max", money(l.Max))
	}
	return v.Words.T("links.amount_open", "currency", l.Amount.Currency)
}

// linkChip returns how a link stands.
func (v *visit) linkChip(l *till.Link) shell.Chip {
	switch {
	case l.Ended(v.Now):
		return shell.Chip{Tone: "ended", Icon: "sand", Text: v.Words.T("links.state_over")}
	case !l.Active:
		return shell.Chip{Tone: "ended", Icon: "bar", Text: v.Words.T("links.state_off")}
	}
	return shell.Chip{Tone: "paid", Icon: "check", Text: v.Words.T("links.state_on")}
}

// linkPage is one link: its address, what came in by it, and what it is.
type linkPage struct {
	*shell.Frame
	Again   string
	Here    string // this page of what came in
	Link    *till.Link
	Heading string
	Pays    string // what a customer pays
	State   shell.Chip
	Going   subject.Going
	Hand    *handing
	NoPage  []string
	Papers  []shell.Choice // to print it on
	Lines   []*line
	Total   int64
	Paid    int64 // of its checkouts
	Pages   *list.Pages
	Facts   []shell.Fact
	Ids     []shell.Fact
	May     bool   // change it
	Typed   string // another title, that was refused
	Wrong   string // with the title
}

// readLink reads the link of the path, and who made it.
func (v *visit) readLink() (l *till.Link, made acts, err error) {
	ref, err := v.Ref("id")
	if err != nil {
		return nil, made, err
	}
	var row *checkouts.LinkRow
	err = v.View(func(ctx context.Context, tx *store.Tx) error {
		if row, err = checkouts.GetLink(ctx, tx, ref); err != nil {
			return err
		}
		made, err = readActs(ctx, tx, ref)
		return err
	})
	if till.ErrorCode(err) == till.CodeLinkNotFound {
		err = shell.ErrNoPage
	}
	if err != nil {
		return nil, made, err
	}
	return &row.Link, made, nil
}

// link is GET /c/{client}/links/{id}.
func (v *visit) link() error {
	p, err := v.newLinkPage()
	if err != nil {
		return err
	}
	return v.Page("link_one", p)
}

func (v *visit) newLinkPage() (*linkPage, error) {
	l, made, err := v.readLink()
	if err != nil {
		return nil, err
	}
	p := &linkPage{Frame: v.Frame(v.Words.T("links.one", "name", l.Title), "menu.links"), Link: l, Heading: l.Title, Pays: v.linkAmount(l), State: v.linkChip(l),
		Again: v.ClientPath("/links/" + l.ID.String()), May: v.May(people.LinksManage)}
	p.Here = p.Again
	p.State.Big = true
	say := "on"
	switch {
	case l.Ended(v.Now):
		say = "over"
	case !l.Active:
		say = "off"
	case l.Open():
		say = "open"
	}
	args := []any{"a", p.Pays, "t", v.Clock.DateTime(l.ExpiresAt)}
	p.Going = subject.Going{Tone: p.State.Tone, Say: v.Words.T("links.say_"+say, args...)}
	if l.Takes(v.Now) {
		p.Going.More = v.Words.T("links.more_on")
	}
	if p.NoPage, err = v.barred(); err != nil {
		return nil, err
	}
	if p.NoPage == nil {
		if p.Hand, err = v.linkHanding(l); err != nil {
			return nil, err
		}
		for _, paper := range linkPapers {
			p.Papers = append(p.Papers, shell.Choice{Text: v.Words.T("links.paper_" + paper), Path: p.Again + "/print?paper=" + paper})
		}
	}
	v.linkFacts(p, &made)
	return p, v.View(func(ctx context.Context, tx *store.Tx) error { return v.readOpened(ctx, tx, p) })
}

// readOpened reads the checkouts that customers opened by the link.
func (v *visit) readOpened(ctx context.Context, tx *store.Tx, p *linkPage) error {
	f := list.ReadWith(v.Visit, p.Again, nil, "all")
	filter := checkouts.Filter{Link: p.Link.ID, From: v.Earliest()}
	rows, total, err := checkouts.List(ctx, tx, v.Client.ID, filter, store.Page{Limit: list.PageSize, Offset: (f.Page - 1) * list.PageSize})
	if err != nil {
		return err
	}
	if p.Lines, err = v.lines(ctx, tx, rows); err != nil {
		return err
	}
	if p.Total, p.Pages = total, list.PagesOf(v.Visit, f, total); f.Page > 1 {
		p.Here = f.Address("page", strconv.Itoa(f.Page))
	}
	filter.State = till.CheckoutPaid
	_, p.Paid, err = checkouts.List(ctx, tx, v.Client.ID, filter, store.Page{})
	return err
}

// linkHanding returns the link's address as it is handed on.
func (v *visit) linkHanding(l *till.Link) (*handing, error) {
	lang, clock := v.customerLook(l.Language)
	w := words.For(lang)
	lines := []string{v.shownName(), l.Title}
	if !l.Open() {
		lines = append(lines, look.MoneyInUse(lang, l.Amount))
	}
	url := v.Console.Checkouts.LinkURL(l)
	lines = append(lines, w.T("checkouts.text_pay", "url", url))
	if !l.ExpiresAt.IsZero() {
		lines = append(lines, w.T("checkouts.text_until", "t", clock.DateTime(l.ExpiresAt)+" "+clock.Offset(l.ExpiresAt)))
	}
	return v.handingOf(url, lines)
}

// linkFacts fills in what the link is.
func (v *visit) linkFacts(p *linkPage, made *acts) {
	t, l := v.Words.T, p.Link
	fact := func(key, value string) *shell.Fact {
		if value == "" {
			return &shell.Fact{}
		}
		p.Facts = append(p.Facts, shell.Fact{Name: t("fact." + key), Value: value})
		return &p.Facts[len(p.Facts)-1]
	}
	fact("description", checkout.LinkDescription(l))
	fact("amount", p.Pays).Strong = true
	if len(l.Suggested) > 0 {
		var all []string
		for _, n := range l.Suggested {
			all = append(all, look.Money(v.Words.Lang(), till.Money{Minor: n, Currency: l.Amount.Currency}))
		}
		fact("suggested", strings.Join(all, " · "))
	}
	if l.AskLabel != "" {
		asks := l.AskLabel
		if l.AskRequired {
			asks = t("links.asks_required", "label", l.AskLabel)
		}
		fact("asks_for", asks)
	}
	fact("made", v.Clock.DateTime(l.CreatedAt)).ISO = p.ISO(l.CreatedAt)
	fact("made_by", made.by(v, "link.create"))
	if !l.ExpiresAt.IsZero() {
		fact("until", v.Clock.DateTime(l.ExpiresAt)).ISO = p.ISO(l.ExpiresAt)
	}
	fact("only_country", l.Country)
	fact("only_methods", methodNames(l.Methods))
	fact("way_back", subject.HostOf(l.ReturnURL))
	p.Ids = []shell.Fact{{Name: t("fact.id_link"), Value: l.ID.String()}, {Name: t("fact.key"), Value: l.IdempotencyKey}}
}

// postLinkState is POST /c/{client}/links/{id}/state: it switches a link on or off.
func (v *visit) postLinkState() error {
	ref, err := v.Ref("id")
	if err != nil {
		return err
	}
	on := v.R.PostFormValue("on") != ""
	if on {
		if err := v.CheckActive(); err != nil {
			return err
		}
	}
	_, err = v.Console.Checkouts.ChangeLink(v.R.Context(), ref, checkout.LinkChange{Active: &on}, v.Session.Actor())
	if till.ErrorCode(err) == till.CodeLinkNotFound {
		return shell.ErrNoPage
	}
	return v.Back(v.ClientPath("/links/"+ref.ID.String()), map[bool]string{true: "link_on", false: "link_off"}[on], err)
}

// postLinkTitle is POST /c/{client}/links/{id}/title.
func (v *visit) postLinkTitle() error {
	p, err := v.newLinkPage()
	if err != nil {
		return err
	}
	title := bounded(v.R.PostFormValue("title"))
	_, err = v.Console.Checkouts.ChangeLink(v.R.Context(), store.Ref{Client: v.Client.ID, ID: p.Link.ID}, checkout.LinkChange{Title: &title}, v.Session.Actor())
	if till.ErrorCode(err) == till.CodeValidationFailed {
		p.Typed, p.Wrong = title, v.Words.T("links.wrong_title", "n", till.MaxLinkTitle)
		v.Render(http.StatusBadRequest, "link_one", p)
		return nil
	}
	return v.Back(p.Again, "link_title", err)
}

// linkPapers are what a link is printed on: a sheet of A6, and a tent for a table, which is A4
// folded in the middle.
var linkPapers = []string{"a6", "tent"}

// printPage is a link as it is printed, in the merchant's language.
type printPage struct {
	*shell.Frame
	Back     string
	Merchant string
	Paper    string
	Papers   []shell.Choice
	Language string
	Faces    []string // one for each side that people see
	Heading  string
	Below    string
	Amount   string
	QR       shell.Block
	How      []string
	URL      string
	TestMark string
	Off      string // why nobody can pay on it now
	NoPage   []string
}

// printLink is GET /c/{client}/links/{id}/print.
func (v *visit) printLink() error {
	l, _, err := v.readLink()
	if err != nil {
		return err
	}
	p := &printPage{Frame: v.Frame(v.Words.T("links.print"), "menu.links"), Back: v.ClientPath("/links/" + l.ID.String()), Paper: v.R.URL.Query().Get("paper")}
	p.Modules, p.Styles = append(p.Modules, "counter.js"), append(p.Styles, "paper.css")
	if !slices.Contains(linkPapers, p.Paper) {
		p.Paper = linkPapers[0]
	}
	for _, paper := range linkPapers {
		p.Papers = append(p.Papers, shell.Choice{Text: v.Words.T("links.paper_" + paper), Path: v.R.URL.Path + "?paper=" + paper, Current: paper == p.Paper})
	}
	if p.NoPage, err = v.barred(); err != nil || p.NoPage != nil {
		if err != nil {
			return err
		}
		return v.Page("link_print", p)
	}
	h, err := v.linkHanding(l)
	if err != nil {
		return err
	}
	lang, _ := v.customerLook(l.Language)
	w := words.For(lang)
	p.Language, p.Merchant, p.Heading, p.Below, p.QR = lang, v.shownName(), l.Title, checkout.LinkDescription(l), h.QR
	if !l.Open() {
		p.Amount = look.MoneyInUse(lang, l.Amount)
	}
	for n := 1; n <= 3; n++ {
		p.How = append(p.How, w.T("links.how_"+strconv.Itoa(n)))
	}
	_, p.URL, _ = strings.Cut(h.URL, "://")
	if p.Test {
		p.TestMark = w.T("links.test")
	}
	if !l.Takes(v.Now) {
		p.Off = v.Words.T("links.print_off")
	}
	p.Faces = []string{"one"}
	if p.Paper == "tent" {
		p.Faces = []string{"turned", "one"}
	}
	return v.Page("link_print", p)
}
