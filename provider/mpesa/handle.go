package mpesa

import (
	"slices"
	"strings"
)

// handleState is what one Check of a payout has to keep for the next. It is stored as the
// handle: "sent=<id> asked=<id>,<id> failed=<code>".
type handleState struct {
	conversationID string   // the ConversationID in the answer to the payout request
	pendingQueries []string // ConversationIDs of status queries without an answer yet
	// failureCode is the code by which the payout's callback says that it was not paid.
	// bound says that the callback named sent.
	failureCode string
	confirmed   bool
}

// maxPendingQueries is how many status queries may wait for their answers. A later answer
// is not recognised, and the query is repeated.
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
		return "none" // an empty handle would keep the old one
	}
	return strings.Join(words, " ")
}

// addQuery adds a status query.
func (m *handleState) addQuery(id string) {
	if m.pendingQueries = append(m.pendingQueries, id); len(m.pendingQueries) > maxPendingQueries {
		m.pendingQueries = m.pendingQueries[len(m.pendingQueries)-maxPendingQueries:]
	}
}

// takeQuery removes an answered status query and reports whether it was ours. An answer is
// used once: the next Check sends a new query.
func (m *handleState) takeQuery(id string) bool {
	i := slices.Index(m.pendingQueries, id)
	if i < 0 {
		return false
	}
	m.pendingQueries = slices.Delete(m.pendingQueries, i, i+1)
	return true
}

// noteCallback applies the callback about the payout itself. It must repeat our reference
// and, if known, the ConversationID of the payout's answer. A success is not used: the
// status query will confirm it.
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
