package mpesa

import (
	"slices"
	"strings"
)

// memory is what must be known about a payout from one Check to the next. It
// is kept as the handle, a short text: "sent=<id> asked=<id>,<id> failed=<code>".
type handleState struct {
	conversationID string   // the ConversationID that the payout's own answer gave
	pendingQueries []string // those of questions whose answers have not come
	// failed is the code by which the callback about the payout says that it
	// was not paid; bound says that the callback named sent.
	failureCode string
	confirmed   bool
}

// maxPendingQueries is how many questions wait for their answers. An answer that takes
// longer than that many questions is not recognised, and asked for again.
const maxPendingQueries = 2

func parseHandleState(handle string) *handleState {
	m := &handleState{}
	for word := range strings.FieldsSeq(handle) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "sent":
			m.conversationID = value
		case "asked":
			m.pendingQueries = strings.Split(value, ",")
		case "failed", "unbound":
			if _, known := payoutCodes[value]; known {
				m.failureCode, m.confirmed = value, name == "failed"
			}
		}
	}
	return m
}

func (m *handleState) String() string {
	words := make([]string, 0, 3)
	if m.conversationID != "" {
		words = append(words, "sent="+m.conversationID)
	}
	if len(m.pendingQueries) > 0 {
		words = append(words, "asked="+strings.Join(m.pendingQueries, ","))
	}
	switch {
	case m.failureCode != "" && m.confirmed:
		words = append(words, "failed="+m.failureCode)
	case m.failureCode != "":
		words = append(words, "unbound="+m.failureCode)
	}
	if len(words) == 0 {
		return "none" // an empty handle would leave the old one in place
	}
	return strings.Join(words, " ")
}

// addQuery remembers a question.
func (m *handleState) addQuery(id string) {
	if m.pendingQueries = append(m.pendingQueries, id); len(m.pendingQueries) > maxPendingQueries {
		m.pendingQueries = m.pendingQueries[len(m.pendingQueries)-maxPendingQueries:]
	}
}

// takeQuery drops a question that was answered, and reports whether it was one of
// ours. The same answer is read once: the next Check asks anew.
func (m *handleState) takeQuery(id string) bool {
	i := slices.Index(m.pendingQueries, id)
	if i < 0 {
		return false
	}
	m.pendingQueries = slices.Delete(m.pendingQueries, i, i+1)
	return true
}

// noteCallback takes what the callback about the payout itself says. It must repeat
// our reference and, where the payout's answer was not lost, the ConversationID
// that came in it. A success is no news: the question will tell.
func (m *handleState) noteCallback(mail *resultCallback, reference string) {
	if !strings.EqualFold(string(mail.Result.OriginatorConversationID), reference) {
		return
	}
	bound := m.conversationID != "" && mail.conversation() == m.conversationID
	if m.conversationID != "" && !bound {
		return
	}
	code := string(mail.Result.ResultCode)
	if _, known := payoutCodes[code]; known {
		m.failureCode, m.confirmed = code, bound
	} else if code == "0" {
		m.failureCode, m.confirmed = "", false
	}
}
