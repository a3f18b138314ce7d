package money

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"till"
	"till/console/look"
	"till/console/subject"
	"till/ledger"
	"till/people"
	"till/store"
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
	Group        story.Group
}

// timeline returns what happened, by time. Webhook deliveries have the
// time they were sent; one that arrived at once kept no time, and has its
// event's.
func (v *visit) timeline(s *story.Story, views []*webhook.DeliveryView, endpoints map[till.ID]*store.Endpoint) []*TimelineItem {
	var out []*TimelineItem
	for _, m := range s.Timeline() {
		if item := v.item(s, m); item != nil {
			out = append(out, item)
		}
	}
	for _, d := range views {
		if e := endpoints[d.EndpointID]; e != nil {
			out = append(out, v.delivery(d, e))
		}
	}
	slices.SortStableFunc(out, func(a, b *TimelineItem) int {
		if a.Next != b.Next {
			return map[bool]int{false: -1, true: 1}[a.Next]
		}
		return int(max(-1, min(1, int64(a.At)-int64(b.At))))
	})
	for i, item := range out {
		item.Time, item.Millis = v.Clock.Time(item.At), v.Clock.Millis(item.At)
		if item.Next {
			item.Millis = ""
		}
		if i > 0 && !v.Clock.SameDay(item.At, out[i-1].At) || i == 0 && !v.Clock.SameDay(item.At, v.Now) {
			item.Day = v.Clock.Day(item.At, v.Now)
		}
		item.Open = i+1 < len(out) && out[i+1].Next
	}
	return out
}

// item puts a moment into words.
func (v *visit) item(s *story.Story, m story.Moment) *TimelineItem {
	t := v.Words.T
	item := &TimelineItem{At: m.At, Group: m.Group, Next: m.Next}
	switch m.Kind {
	case story.MomentEvent:
		v.event(item, s, m.Event)
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
		if m.Audit.Action == actCreate {
			return nil // the event says it
		}
		item.Icon, item.Text, item.Sub = "person", t("line.act", "who", till.NameOfActor(m.Audit.Actor), "what", subject.ActWords(v.Visit, m.Audit.Action)), look.MaskedIn(m.Audit.Detail)
	case story.MomentNote:
		item.Icon, item.Text, item.Sub = "note", t("line.note", "who", till.NameOfActor(m.Note.Actor)), m.Note.Text
	case story.MomentNextSend:
		item.Icon, item.Text = "clock", t("line.next_send", "op", s.Subject.Connection)
	case story.MomentNextAsk:
		item.Icon, item.Text = "clock", t("line.next_ask", "op", s.Subject.Connection)
	case story.MomentEnd:
		item.Icon, item.Text, item.Sub = "sand", t("line.next_end"), t("line.next_end_sub", "op", subject.OperatorName(v.Visit, s))
	}
	if a := m.Audit; a != nil {
		item.Audit = t("line.audit", "n", strconv.FormatInt(a.Sequence, 10))
		if v.May(people.AuditSee) {
			item.AuditPath = v.ClientPath("/audit?range=all&who=all&before=" + strconv.FormatInt(a.Sequence+1, 10))
		}
	}
	return item
}

// actCreate is the act of a person who made the payment.
const actCreate = "payment.create"

// event puts a change of the status into words.
func (v *visit) event(item *TimelineItem, s *story.Story, e *store.EventRow) {
	_, kind, _ := strings.Cut(string(e.Kind), ".")
	key := "event." + string(s.Kind) + "_" + kind
	item.Text = v.Words.T(key)
	item.End = v.Words.T("line.event", "n", strconv.FormatInt(e.Sequence, 10))
	switch kind {
	case "pending":
		item.Icon = "dot"
		if i := slices.IndexFunc(s.Acts, func(a *store.AuditRow) bool { return a.Action == actCreate }); i >= 0 {
			item.Text = v.Words.T("line.asked_by", "who", till.NameOfActor(s.Acts[i].Actor))
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

// delivery puts what became of an event at an endpoint into words.
func (v *visit) delivery(d *webhook.DeliveryView, e *store.Endpoint) *TimelineItem {
	t := v.Words.T
	host := e.URL
	if u, err := url.Parse(e.URL); err == nil {
		host = u.Host
	}
	item := &TimelineItem{At: d.EventAt, Group: story.AboutWebhooks, Icon: "mail", Text: host, End: t("line.event", "n", strconv.FormatInt(d.Sequence, 10))}
	item.EndPath = v.ClientPath("/webhooks/" + e.ID.String() + "/events/" + strconv.FormatInt(d.Sequence, 10))
	if !d.Last.SentAt.IsZero() {
		item.At = d.Last.SentAt
	}
	status := t("delivery." + string(d.Status))
	switch {
	case d.Status == store.DeliveryDelivered && !d.HasRow:
		item.Sub = t("line.delivered_at_once")
	case d.Status == store.DeliveryDelivered:
		item.Sub = t("line.delivered", "what", status, "n", d.Attempts)
	case d.Status == store.DeliveryPending && !d.HasRow:
		item.Next, item.At, item.Sub = true, max(d.EventAt, v.Now), status
	case d.Status == store.DeliveryPending:
		item.Tone, item.Sub = "failed", t("line.retried", "n", d.Attempts, "t", v.Clock.Moment(max(d.DueAt, v.Now), v.Now))
	default:
		item.Tone, item.Sub = "failed", status
	}
	if d.Last.Code != 0 || d.Last.Problem != "" {
		item.DetailName = t("line.answer")
		item.Detail = strings.TrimSpace(strconv.Itoa(d.Last.Code) + " " + d.Last.Problem + "\n" + d.Last.Text)
	}
	return item
}
