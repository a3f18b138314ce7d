package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"till"
	"till/console/list"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/people"
	"till/store"
	"till/store/webhooks"
	"till/webhook"
)

// endpointPage is one endpoint with its deliveries.
type endpointPage struct {
	*shell.Frame
	Done, Refused string
	*endpointView
	Lines   []*deliveryLine
	Tabs    []shell.Choice
	Range   *list.RangePicker
	Wide    string // the whole time, if a part of it has nothing
	Older   string // the address of the deliveries before these
	Newer   string
	Facts   []shell.Fact
	Form    *endpointForm // nil: the person may not change it
	Resend  bool
	LastSeq int64
	Again   string
	Back    string
	Act     string
	Proof   *shell.ProofForm
}

// deliveryLine is what became of an event at an endpoint, in a list.
type deliveryLine struct {
	ID    string
	Day   string
	At    till.Time
	Time  string
	State shell.Chip
	Kind  string
	Path  string
	End   string // "event 1040"
	Say   string // the answer, the attempts
	Why   string // what kind of a delivery it is, if somebody asked for it
}

// endpoint reads the endpoint of the path.
func (v *visit) endpoint(ctx context.Context, tx *store.Tx) (*webhooks.Endpoint, error) {
	ref, err := v.Ref("endpoint")
	if err != nil {
		return nil, err
	}
	e, err := webhooks.ReadEndpoint(ctx, tx, ref)
	if err == nil && e == nil {
		err = shell.ErrNoPage
	}
	return e, err
}

// deliveryFilters are the tabs of an endpoint's deliveries; "" is all of them.
var deliveryFilters = []webhooks.DeliveryStatus{"", webhooks.DeliveryPending, webhooks.DeliveryDelivered, webhooks.DeliveryExhausted, webhooks.DeliveryDisabled}

// webhookEndpoint is GET /c/{client}/webhooks/{endpoint}.
func (v *visit) webhookEndpoint() error {
	p, err := v.endpointPage()
	if err != nil {
		return err
	}
	return v.Page("endpoint", p)
}

func (v *visit) endpointPage() (*endpointPage, error) {
	_, path, err := v.endpointID()
	if err != nil {
		return nil, err
	}
	f := list.ReadWith(v.Visit, path, list.Texts(deliveryFilters[1:]), "all")
	before, _ := strconv.ParseInt(v.R.URL.Query().Get("before"), 10, 64) // what is no number is the newest
	p := &endpointPage{Back: v.ClientPath("/webhooks"), Again: v.R.URL.RequestURI(), Resend: v.May(people.WebhooksResend), Act: v.NewAct()}
	var next int64
	err = v.View(func(ctx context.Context, tx *store.Tx) error {
		e, err := v.endpoint(ctx, tx)
		if err != nil {
			return err
		}
		views, err := v.endpointViews(ctx, tx, []*webhooks.Endpoint{e})
		if err != nil {
			return err
		}
		p.endpointView, p.LastSeq = views[0], e.LastEvent
		want := webhook.DeliveryFilter{Status: webhooks.DeliveryStatus(f.State), From: f.From, To: f.To, Before: max(before, 0)}
		deliveries, n, err := webhook.ListDeliveries(ctx, tx, e, v.Requester(), want, list.PageSize)
		next = n
		p.Lines = v.deliveryLines(e, deliveries)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.State.Big = true
	p.Frame = v.Frame(v.Words.T("hooks.title", "host", p.Host), "menu.webhooks")
	_, p.Refused = v.Outcome()
	for _, s := range deliveryFilters {
		p.Tabs = append(p.Tabs, shell.Choice{Text: v.Words.T("hooks.show_" + cmp.Or(string(s), "all")), Path: f.Address("state", string(s)), Current: string(s) == f.State})
	}
	p.Range = list.PickRange(v.Visit, p.Frame, f, f.Kept(), f.Address)
	if p.Range.On && len(p.Lines) == 0 {
		p.Wide = f.Address("range", "")
	}
	if next > 0 {
		p.Older = f.Address("before", strconv.FormatInt(next, 10))
	}
	if before > 0 {
		p.Newer = f.Address()
	}
	if v.May(people.WebhooksManage) {
		p.Form = v.endpointForm(p.Path+"/edit", p.Endpoint)
		if p.Proof, err = v.ProofForm(); err != nil {
			return nil, err
		}
		if p.Proof != nil {
			p.Frame.Modules = []string{"passkey.js"}
		}
	}
	v.endpointFacts(p)
	return p, nil
}

// endpointFacts fills in what the endpoint is.
func (v *visit) endpointFacts(p *endpointPage) {
	t, e := v.Words.T, p.Endpoint
	add := func(key, value string) {
		if value != "" {
			p.Facts = append(p.Facts, shell.Fact{Name: t(key), Value: value})
		}
	}
	add("hooks.description", e.Description)
	events := t("hooks.all_events")
	if e.Events != nil {
		events = strings.Join(e.Kinds(), ", ")
	}
	add("hooks.events", events)
	add("hooks.backlog", look.Count(v.Words.Lang(), e.Backlog))
	if !e.LastSuccessAt.IsZero() {
		add("hooks.success", v.Clock.DateTime(e.LastSuccessAt))
	}
	add("hooks.made", v.Clock.DateTime(e.CreatedAt))
	if e.OldUntil > v.Now {
		add("hooks.old_until", v.Clock.DateTime(e.OldUntil))
	}
}

// deliveryLines puts deliveries into words.
func (v *visit) deliveryLines(e *webhooks.Endpoint, all []*webhook.DeliveryView) []*deliveryLine {
	out := make([]*deliveryLine, len(all))
	for i, d := range all {
		l := &deliveryLine{At: d.EventAt, Kind: string(d.EventKind), State: v.deliveryChip(d), Say: v.deliverySay(d)}
		if !d.Last.SentAt.IsZero() {
			l.At = d.Last.SentAt
		}
		l.ID = strconv.FormatInt(d.Sequence, 10) + string(d.Kind)
		l.Time, l.Path = v.Clock.Time(l.At), v.ClientPath("/webhooks/"+e.ID.String()+"/events/"+strconv.FormatInt(d.Sequence, 10))
		if d.Kind != webhooks.DeliverTest {
			l.End = v.Words.T("line.event", "n", strconv.FormatInt(d.Sequence, 10))
		}
		if d.Kind != webhooks.DeliverEvent {
			l.Why = v.Words.T("hooks.kind_" + string(d.Kind))
		}
		if i == 0 || !v.Clock.SameDay(l.At, out[i-1].At) {
			l.Day = v.Clock.Day(l.At, v.Now)
		}
		out[i] = l
	}
	return out
}

func (v *visit) deliveryChip(d *webhook.DeliveryView) shell.Chip {
	text := v.Words.T("delivery." + string(d.Status))
	switch d.Status {
	case webhooks.DeliveryDelivered:
		return shell.Chip{Tone: "paid", Icon: "check", Text: text}
	case webhooks.DeliveryPending:
		if d.Attempts > 0 {
			return shell.Chip{Tone: "failed", Icon: "turn", Text: v.Words.T("hooks.retried")}
		}
		return shell.Chip{Tone: "pending", Icon: "clock", Text: text}
	case webhooks.DeliverySuperseded:
		return shell.Chip{Tone: "ended", Icon: "right", Text: text}
	case webhooks.DeliveryDisabled:
		return shell.Chip{Tone: "ended", Icon: "bar", Text: text}
	}
	return shell.Chip{Tone: "failed", Icon: "cross", Text: text}
}

// deliverySay says what was answered, how often it was tried and when next.
func (v *visit) deliverySay(d *webhook.DeliveryView) string {
	t, parts := v.Words.T, []string(nil)
	if a := &d.Last; !a.SentAt.IsZero() {
		parts = append(parts, v.attemptSay(a))
	} else if d.Status == webhooks.DeliveryDelivered {
		parts = append(parts, t("hooks.no_answer_kept"))
	}
	if d.Attempts > 1 || d.Attempts == 1 && d.Status != webhooks.DeliveryDelivered {
		parts = append(parts, t("hooks.attempt", "n", d.Attempts, "most", webhook.MaxAttempts))
	}
	if d.HasRow && d.Status == webhooks.DeliveryPending {
		parts = append(parts, t("hooks.next", "t", v.Clock.Moment(max(d.DueAt, v.Now), v.Now)))
	}
	return strings.Join(parts, " · ")
}

// attemptSay says what one attempt was answered: "500 after 212 ms".
func (v *visit) attemptSay(a *webhooks.DeliveryAttempt) string {
	took := look.Count(v.Words.Lang(), a.Took.Round(time.Millisecond).Milliseconds())
	if a.Code != 0 {
		return v.Words.T("hooks.answered", "code", strconv.Itoa(a.Code), "ms", took)
	}
	return v.Words.T("hooks.unanswered", "why", v.Words.T("problem."+a.Problem), "ms", took)
}

// deliveryPage is one event at one endpoint.
type deliveryPage struct {
	*shell.Frame
	Done, Refused string
	Endpoint      *endpointView
	Event         *store.EventRow // nil: the log has none, of a test
	Kind          string
	Number        string // "event 1040"
	Deliveries    []*deliveryBox
	Body          string
	Subject       string // the address of its payment or payout
	SubjectKind   string
	Facts         []shell.Fact
	Resend        bool
	Back          string
	Again         string
}

// deliveryBox is one delivery of the event.
type deliveryBox struct {
	Title   string
	State   shell.Chip
	Say     string
	Why     string // in a plain sentence
	Headers string
	Answer  string
	Code    int
	At      till.Time
	When    string
}

// webhookEvent is GET /c/{client}/webhooks/{endpoint}/events/{n}.
func (v *visit) webhookEvent() error {
	n, err := strconv.ParseInt(v.R.PathValue("n"), 10, 64)
	if err != nil || n < 0 {
		return shell.ErrNoPage
	}
	p := &deliveryPage{Resend: v.May(people.WebhooksResend), Again: v.R.URL.RequestURI()}
	var e *webhooks.Endpoint
	var all []*webhook.DeliveryView
	err = v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		if e, err = v.endpoint(ctx, tx); err != nil {
			return err
		}
		events, err := tx.EventBodiesAt(ctx, v.Client.ID, []int64{n})
		if err != nil {
			return err
		}
		if len(events) == 1 {
			p.Event = events[0]
		}
		all, err = webhook.DeliveriesAt(ctx, tx, e, n)
		return err
	})
	if err != nil {
		return err
	}
	if p.Event == nil && len(all) == 0 {
		return shell.ErrNoPage
	}
	p.Endpoint = v.endpointView(e, nil)
	p.Back, p.Number = p.Endpoint.Path, v.Words.T("line.event", "n", strconv.FormatInt(n, 10))
	p.Kind = string(till.EndpointTest)
	if p.Event != nil {
		p.Kind = string(p.Event.Kind)
		v.describeEvent(p)
	}
	for _, d := range all {
		b := v.deliveryBox(d)
		if p.Event != nil && d.Kind != webhooks.DeliverTest && b.Headers != "" {
			if signature := v.Console.Endpoints.SignatureOf(e, d.EventID, d.Last.SentAt, p.Event.AppendJSON(nil)); signature != "" {
				b.Headers += "\nwebhook-signature: " + signature
			}
		}
		p.Deliveries = append(p.Deliveries, b)
	}
	p.Frame = v.Frame(p.Kind+" · "+p.Number, "menu.webhooks")
	_, p.Refused = v.Outcome()
	return v.Page("delivery", p)
}

// describeEvent fills in the event's body and what it is about.
func (v *visit) describeEvent(p *deliveryPage) {
	ev := p.Event
	p.Body = readableBody(ev.AppendJSON(nil))
	switch {
	case ev.Payout != nil && ev.Payout.IsRefund():
		p.Subject, p.SubjectKind = v.ClientPath("/refunds/"+ev.SubjectID.String()), "refund"
	case ev.Payout != nil && v.May(people.WalletsSee):
		p.Subject, p.SubjectKind = v.ClientPath("/payouts/"+ev.SubjectID.String()), "payout"
	case ev.Payment != nil:
		p.Subject, p.SubjectKind = v.ClientPath("/payments/"+ev.SubjectID.String()), "payment"
	}
	p.Facts = []shell.Fact{{Name: v.Words.T("hooks.event_at"), Value: v.Clock.DateTime(ev.CreatedAt), ISO: p.ISO(ev.CreatedAt)}, {Name: v.Words.T("hooks.event_id"), Value: ev.ID().String()}}
}

// phoneMember is a phone in a body.
var phoneMember = regexp.MustCompile(`"phone":"([^"]*)"`)

// readableBody returns a body as people read it, its phones masked: who may see
// a whole one is asked on the payment's page.
func readableBody(body []byte) string {
	body = phoneMember.ReplaceAllFunc(body, func(m []byte) []byte {
		return []byte(`"phone":"` + subject.MaskPhone(string(phoneMember.FindSubmatch(m)[1])) + `"`)
	})
	var out strings.Builder
	if b, err := json.MarshalIndent(json.RawMessage(body), "", "  "); err == nil {
		out.Write(b)
	} else {
		out.Write(body)
	}
	return out.String()
}

// longDigits is what may be a phone number in a text that somebody else wrote, in
// groups or not.
var longDigits = regexp.MustCompile(`\+?[0-9](?:[ \x{a0}\x{202f}.()-]{0,2}[0-9]){7,14}`)

// maskDigits hides what may be phone numbers: a receiver may send back what it was
// sent.
func maskDigits(text string) string {
	return longDigits.ReplaceAllStringFunc(text, func(number string) string { return subject.MaskPhone(subject.DigitsOf(number)) })
}

func (v *visit) deliveryBox(d *webhook.DeliveryView) *deliveryBox {
	b := &deliveryBox{Title: v.Words.T("hooks.kind_" + string(d.Kind)), State: v.deliveryChip(d), Say: v.deliverySay(d), At: d.Last.SentAt, Code: d.Last.Code}
	a := &d.Last
	if a.SentAt.IsZero() {
		return b
	}
	b.When = v.Clock.DateTime(a.SentAt)
	b.Headers = "POST " + (&endpointView{Endpoint: &webhooks.Endpoint{Endpoint: till.Endpoint{URL: a.URL}}}).ShownURL() + "\nwebhook-id: " + d.EventID.String() +
		"\nwebhook-timestamp: " + strconv.FormatInt(a.SentAt.Std().Unix(), 10)
	b.Answer = maskDigits(a.Text)
	if why := webhook.AttemptTrouble(a); why != webhook.TroubleNone {
		b.Why = v.Words.T("trouble."+string(why), "code", a.Code, "host", subject.HostOf(a.URL))
	}
	return b
}
