package money

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"till"
	"till/collect"
	"till/console/look"
	"till/console/subject"
	"till/ledger"
	"till/people"
	"till/store"
	"till/store/webhooks"
	"till/story"
	"till/webhook"
)

// TimelineItem is one line of a timeline, ready for people.
type TimelineItem struct {
	At           till.Time
	Day          string // where a new day begins
	Time, Millis string
	Icon, Tone   string
	Text, Sub    string
	End          string // at the end of the line: "event 1042"
	EndPath      string // where it leads
	Audit        string // "audit row 12"
	AuditPath    string // where it is, for those who may see the log
	Detail       string // what opens below
	DetailName   string
	Next, Open   bool
	Untimed      bool // it waits, and nobody knows a time for it
	Group        story.Group
	Try          string // where a waiting event is sent at once
	TryEvent     string // its id
}

// timeline returns what happened, by time. Webhook deliveries have the
// time they were sent; one that arrived at once kept no time, and has its
// event's. What still waits for an endpoint is one line.
func (v *visit) timeline(s *story.Story, told *subject.Told) []*TimelineItem {
	var out []*TimelineItem
	for _, m := range s.Timeline() {
		if item := v.item(s, told, m); item != nil {
			out = append(out, item)
		}
	}
	waiting := map[till.ID][]*webhook.DeliveryView{}
	for _, d := range told.Deliveries {
		e := told.Endpoints[d.EndpointID]
		switch {
		case e == nil:
		case d.Status == webhooks.DeliveryPending:
			waiting[e.ID] = append(waiting[e.ID], d)
		default:
			out = append(out, v.delivery(d, e))
		}
	}
	for id, all := range waiting {
		out = append(out, v.waiting(all, told.Endpoints[id], told.Troubles[told.Endpoints[id].Ref()]))
	}
	slices.SortStableFunc(out, func(a, b *TimelineItem) int {
		if a.Next != b.Next {
			return map[bool]int{false: -1, true: 1}[a.Next]
		}
		return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.EndPath, b.EndPath))
	})
	for i, item := range out {
		item.Time, item.Millis = v.Clock.Time(item.At), v.Clock.Millis(item.At)
		if item.Next {
			item.Millis = ""
		}
		if item.Untimed {
			item.Time = ""
		}
		if i > 0 && !v.Clock.SameDay(item.At, out[i-1].At) || i == 0 && !v.Clock.SameDay(item.At, v.Now) {
			item.Day = v.Clock.Day(item.At, v.Now)
		}
		item.Open = i+1 < len(out) && out[i+1].Next
	}
	return out
}

// item puts a moment into words.
func (v *visit) item(s *story.Story, told *subject.Told, m story.Moment) *TimelineItem {
	t := v.Words.T
	item := &TimelineItem{At: m.At, Group: m.Group, Next: m.Next}
	switch m.Kind {
	case story.MomentEvent:
		v.event(item, s, told, m)
	case story.MomentSent:
		item.Icon, item.Text = "send", t("line.sent", "op", m.Attempt.Connection)
		v.answer(item, m.Attempt)
	case story.MomentAsked:
		item.Icon, item.Text = "ask", t("line.asked", "op", m.Attempt.Connection, "n", m.Attempt.Repeats)
		v.answer(item, m.Attempt)
	case story.MomentResolved:
		item.Icon, item.Text, item.Sub = "person", t("line.resolved"), subject.CallText(v.Visit, m.Attempt)
	case story.MomentCallback:
		item.Icon, item.Text, item.Sub = "bolt", t("line.callback", "op", s.Subject.Connection, "n", s.Calls.Count), t("line.callback_sub")
		if s.Calls.Count > 1 {
			item.Sub = t("line.callback_last", "t", v.Clock.Moment(s.Calls.Last, v.Now))
		}
	case story.MomentLine:
		v.walletLine(item, m.Line)
	case story.MomentDecided:
		item.Icon, item.Text, item.Sub = "coins", subject.ActWords(v.Visit, m.Audit.Action), subject.DecidedText(v.Visit, m.Audit)
	case story.MomentOpened:
		item.Icon, item.Tone, item.Text, item.Sub = "gem", "examine", t("line.opened", "kind", subject.CaseKind(v.Visit, m.Case.Kind)), subject.CaseText(v.Visit, m.Case)
	case story.MomentClosed:
		item.Icon, item.Text, item.Sub = "check", t("line.closed", "kind", subject.CaseKind(v.Visit, m.Case.Kind)), subject.ClosedText(v.Visit, m.Case)
	case story.MomentAct:
		if m.Audit.Action == actCreate || m.Audit.Action == actRefund {
			return nil // the event says it
		}
		item.Icon, item.Text, item.Sub = "person", t("line.act", "who", told.Who(v.Visit, m.Audit.Actor), "what", subject.ActWords(v.Visit, m.Audit.Action)), look.MaskedIn(m.Audit.Detail)
	case story.MomentNote:
		item.Icon, item.Text, item.Sub = "note", t("line.note", "who", till.NameOfActor(m.Note.Actor)), m.Note.Text
	case story.MomentNextSend:
		item.Icon, item.Text = "clock", t("line.next_send", "op", s.Subject.Connection)
	case story.MomentNextAsk:
		item.Icon, item.Text = "clock", t("line.next_ask", "op", s.Subject.Connection)
	case story.MomentEnd:
		item.Icon, item.Text, item.Sub = "sand", t("line.next_end"), t("line.next_end_sub", "op", subject.OperatorName(v.Visit, s))
	}
	if m.Refund != nil {
		item.End, item.EndPath = t("line.refund"), v.ClientPath("/refunds/"+m.Refund.ID.String())
		if m.Attempt != nil {
			item.Text = t("line.of_refund", "what", item.Text)
		}
	}
	if a := m.Audit; a != nil {
		item.Audit = t("line.audit", "n", strconv.FormatInt(a.Sequence, 10))
		if v.May(people.AuditSee) {
			item.AuditPath = v.ClientPath("/audit?range=all&who=all&before=" + strconv.FormatInt(a.Sequence+1, 10))
		}
	}
	return item
}

// The acts of who made the payment, or the refund.
const (
	actCreate = "payment.create"
	actRefund = "refund.create"
)

// event puts a change of the status into words.
func (v *visit) event(item *TimelineItem, s *story.Story, told *subject.Told, m story.Moment) {
	e := m.Event
	_, kind, _ := strings.Cut(string(e.Kind), ".")
	key := "event." + string(s.Kind) + "_" + kind
	if item.Text = v.Words.T(key); m.Refund != nil {
		item.Text = v.Words.T("event.refund_"+kind, "a", m.Refund.Amount)
	}
	item.End = v.Words.T("line.event", "n", strconv.FormatInt(e.Sequence, 10))
	switch kind {
	case "pending":
		item.Icon = "dot"
		if i := slices.IndexFunc(s.Acts, func(a *store.AuditRow) bool { return a.Action == actCreate || a.Action == actRefund }); i >= 0 && m.Refund == nil {
			item.Text = v.Words.T("line.asked_by", "who", told.Who(v.Visit, s.Acts[i].Actor))
		} else if _, _, ok := collect.AskOf(s.Subject.Document); ok && s.Payment != nil && m.Refund == nil {
			item.Text = v.Words.T("line.asked_on_page")
		}
	case "processing":
		item.Icon, item.Tone = "turn", "processing"
		if s.Kind == till.SubjectPayment {
			item.Icon = "phone"
		}
	case "success":
		item.Icon, item.Tone = "check", "paid"
		if e.ProviderReference != "" {
			item.Sub = v.Words.T("line.receipt", "receipt", e.ProviderReference)
		}
	case "failed", "cancelled":
		item.Icon, item.Tone = "cross", "failed"
	case "expired":
		item.Icon = "sand"
	case "needs_attention":
		item.Icon, item.Tone = "gem", "examine"
	case "attention_ended":
		item.Icon = "check"
	default:
		item.Icon, item.Tone = "undo", "late"
	}
	if e.FailureReason != "" {
		item.Sub = subject.Reason(v.Visit, e.FailureReason)
	}
}

// answer puts what came of a call into words.
func (v *visit) answer(item *TimelineItem, a *store.Attempt) {
	t := v.Words.T
	outcome := a.Outcome
	if outcome == "" {
		outcome = "in_flight"
	}
	word := t("line.outcome_unknown")
	if key := "outcome." + outcome; v.Words.Has(key) {
		word = t(key)
	}
	item.Sub = word
	if took := a.EndedAt.Sub(a.StartedAt); !a.EndedAt.IsZero() && took >= 0 && a.Repeats <= 1 {
		item.Sub = t("line.took", "what", word, "ms", look.Count(v.Words.Lang(), took.Milliseconds()))
	}
	if a.Repeats > 1 {
		item.Sub = t("line.since", "what", word, "t", v.Clock.Moment(a.LastAt, v.Now))
	}
	if a.Code != "" || a.Detail != "" {
		item.Detail, item.DetailName = strings.TrimSpace(a.Code+"\n"+subject.CallText(v.Visit, a)), t("line.detail")
	}
}

// walletLine puts a line of the wallet into words.
func (v *visit) walletLine(item *TimelineItem, l *ledger.Transaction) {
	lang := v.Words.Lang()
	sign := "+"
	if l.Direction == "debit" {
		sign = "\u2212"
	}
	name := l.Type
	if key := "entry." + l.Type; v.Words.Has(key) {
		name = v.Words.T(key)
	}
	item.Icon, item.Text = "coins", name+" "+sign+look.Money(lang, l.Amount)
	item.Sub = v.Words.T("line.balance", "balance", look.Money(lang, till.Money{Minor: l.BalanceAfter, Currency: l.Amount.Currency}))
	item.End = v.Words.T("line.line", "n", strconv.FormatInt(l.Sequence, 10))
	if v.May(people.WalletsSee) {
		item.EndPath = v.statementPath(l)
	}
}

// nameOf returns what people call an endpoint: what they noted, or else its host.
func nameOf(e *webhooks.Endpoint) string {
	const most = 40
	name := []rune(e.Description)
	switch {
	case len(name) == 0:
		return subject.HostOf(e.URL)
	case len(name) > most:
		return string(name[:most-1]) + "…"
	}
	return string(name)
}

// delivery puts what became of an event at an endpoint into words.
func (v *visit) delivery(d *webhook.DeliveryView, e *webhooks.Endpoint) *TimelineItem {
	t := v.Words.T
	item := &TimelineItem{At: d.EventAt, Group: story.AboutWebhooks, Icon: "mail", Text: t("line.told", "name", nameOf(e), "kind", string(d.EventKind)), End: t("line.event", "n", strconv.FormatInt(d.Sequence, 10))}
	item.EndPath = v.ClientPath("/webhooks/" + e.ID.String() + "/events/" + strconv.FormatInt(d.Sequence, 10))
	if !d.Last.SentAt.IsZero() {
		item.At = d.Last.SentAt
	}
	status := t("delivery." + string(d.Status))
	switch {
	case d.Status == webhooks.DeliveryDelivered && !d.HasRow:
		item.Sub = t("line.delivered_at_once")
	case d.Status == webhooks.DeliveryDelivered:
		item.Sub = t("line.delivered", "what", status, "n", d.Attempts)
	default:
		item.Tone, item.Sub = "failed", status
	}
	if d.Last.Code != 0 || d.Last.Problem != "" {
		item.DetailName = t("line.answer")
		item.Detail = strings.TrimSpace(strconv.Itoa(d.Last.Code) + " " + d.Last.Problem + "\n" + d.Last.Text)
	}
	return item
}

// waiting puts what still waits for an endpoint into one line: how many events, since
// when and why they do not arrive, and when the next is tried. A time is said only where
// there is one.
func (v *visit) waiting(all []*webhook.DeliveryView, e *webhooks.Endpoint, trouble *webhooks.Delivery) *TimelineItem {
	t := v.Words.T
	slices.SortFunc(all, func(a, b *webhook.DeliveryView) int { return cmp.Compare(a.Sequence, b.Sequence) })
	first, last := all[0], (*webhooks.DeliveryAttempt)(nil)
	item := &TimelineItem{Group: story.AboutWebhooks, Icon: "mail", Next: true, Text: t("line.waits", "name", nameOf(e), "n", len(all))}
	path := v.ClientPath("/webhooks/" + e.ID.String())
	item.End, item.EndPath = t("line.event", "n", strconv.FormatInt(first.Sequence, 10)), path+"/events/"+strconv.FormatInt(first.Sequence, 10)
	if trouble != nil {
		last = &trouble.Last
	}
	var kinds []string
	for i, d := range all {
		kind := string(d.EventKind)
		if !d.Last.SentAt.IsZero() {
			if last == nil || d.Last.SentAt > last.SentAt {
				last = &d.Last
			}
			kind += " · " + t("line.tries", "n", d.Attempts, "t", v.Clock.Moment(d.Last.SentAt, v.Now))
		}
		kinds = append(kinds, kind)
		due := max(d.DueAt, e.BlockedUntil) // the place of one that has no row yet is the log's
		if i == 0 || due < item.At {
			item.At = due
		}
	}
	var parts []string
	if last != nil {
		item.Tone = "failed"
		since := e.FailingSince
		if since.IsZero() {
			since = last.SentAt
		}
		parts = append(parts, t("line.fails", "t", v.Clock.Moment(since, v.Now), "why", answerOf(v.Words.T, last)))
	}
	if item.At > v.Now {
		parts = append(parts, t("line.next_try", "t", v.Clock.Moment(item.At, v.Now)))
	} else {
		item.At, item.Untimed = v.Now, true
		parts = append(parts, t("line.soon"))
	}
	item.Sub = strings.Join(parts, " · ")
	item.DetailName, item.Detail = t("line.which"), strings.Join(kinds, "\n")
	if last != nil && v.May(people.WebhooksResend) {
		item.Try, item.TryEvent = path+"/again", first.EventID.String()
	}
	return item
}

// answerOf says in a word or two what an attempt was answered.
func answerOf(t func(string, ...any) string, a *webhooks.DeliveryAttempt) string {
	if a.Code != 0 {
		return strconv.Itoa(a.Code)
	}
	return t("problem." + a.Problem)
}
