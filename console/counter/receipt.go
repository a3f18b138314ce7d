package counter

import (
	"context"
	"slices"
	"strings"
	"time"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/console/words"
	"till/store"
	"till/story"
)

// papers are what receipts are printed on: rolls of 58 and 80 mm, and A4.
var papers = []string{"58", "80", "a4"}

// copyAfter is how long after the payment a receipt is no longer the first one.
const copyAfter = 15 * time.Minute

// receiptPage is a receipt, as it is printed. Its language is the merchant's,
// which need not be that of the person who prints it.
type receiptPage struct {
	*shell.Frame
	Paper    string
	Papers   []shell.Choice
	Back     string
	Unpaid   string // why there is no receipt
	Language string
	Heading  string
	Mark     string // "copy"
	TestMark string
	Void     string // the money was taken back
	Head     []string
	Foot     []string
	Amount   string
	Rows     []shell.Fact
	Fine     string
}

// Message is the receipt as a text that is copied or sent on, in the merchant's
// language.
func (p *receiptPage) Message() string {
	if p.Amount == "" {
		return ""
	}
	title := p.Heading
	if p.Mark != "" {
		title += " · " + p.Mark
	}
	lines := []string{p.Name, title + ": " + p.Amount}
	if p.Language == look.French {
		lines[1] = title + " : " + p.Amount
	}
	for _, line := range []string{p.TestMark, p.Void} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	for _, r := range p.Rows {
		lines = append(lines, r.Name+": "+r.Value)
	}
	return strings.Join(append(lines, p.Fine), "\n")
}

// receipt is GET /c/{client}/payments/{id}/receipt.
func (v *visit) receipt() error {
	ref, err := v.Ref("id")
	if err != nil {
		return err
	}
	if ref.ID.Time() < v.earliestPayment() {
		return shell.ErrNoPage
	}
	var history *story.Story
	err = v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		history, err = story.ReadStory(ctx, tx, till.SubjectPayment, ref)
		return err
	})
	if err != nil {
		return err
	}
	p := &receiptPage{Frame: v.Frame(v.Words.T("receipt.title"), "menu.payments"), Back: v.ClientPath("/payments/" + ref.ID.String()), Paper: v.R.URL.Query().Get("paper")}
	p.Modules, p.Styles = append(p.Modules, "counter.js"), append(p.Styles, "paper.css")
	if !slices.Contains(papers, p.Paper) {
		p.Paper = papers[1]
	}
	for _, paper := range papers {
		p.Papers = append(p.Papers, shell.Choice{Text: v.Words.T("receipt.paper_" + paper), Path: v.R.URL.Path + "?paper=" + paper, Current: paper == p.Paper})
	}
	if !history.Payment.Credited() {
		p.Unpaid = v.Words.T("receipt.unpaid")
		return v.Page("receipt", p)
	}
	v.fillReceipt(p, history)
	return v.Page("receipt", p)
}

// fillReceipt writes the receipt in the merchant's language.
func (v *visit) fillReceipt(p *receiptPage, s *story.Story) {
	w := v.Words
	if v.Profile.Language != "" {
		w = words.For(v.Profile.Language)
	}
	clock, pay := look.Clock{Lang: w.Lang(), Zone: look.NewClock(w.Lang(), v.Profile.Zone).Zone}, s.Payment
	at := subject.PaidAt(s)
	p.Language, p.Heading, p.Amount = w.Lang(), w.T("receipt.title"), look.MoneyInUse(w.Lang(), pay.Amount)
	p.Head, p.Foot = shell.TextLines(v.Profile.ReceiptHead), shell.TextLines(v.Profile.ReceiptFoot)
	if v.Now.Sub(at) > copyAfter {
		p.Mark = w.T("receipt.copy")
	}
	if p.Test {
		p.TestMark = w.T("receipt.test")
	}
	if !s.ReversedAt.IsZero() {
		p.Void = w.T("receipt.void", "t", clock.DateTime(s.ReversedAt))
	}
	description, _ := subject.ReadDocument(s.Subject.Document)
	row := func(name, value string) {
		if value != "" {
			p.Rows = append(p.Rows, shell.Fact{Name: name, Value: value})
		}
	}
	row(w.T("receipt.date"), clock.DateTime(at)+" "+clock.Offset(at))
	row(w.T("receipt.customer"), subject.MaskPhone(pay.Phone))
	row(w.T("receipt.method"), shell.MethodName(pay.Method, pay.Country))
	row(w.T("receipt.number"), pay.ProviderReference)
	row(w.T("receipt.reference"), pay.Reference)
	row(w.T("receipt.description"), description)
	row(w.T("receipt.id"), pay.ID.String())
	p.Fine = w.T("receipt.notice")
}
