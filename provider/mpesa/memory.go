package mpesa

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"till/provider/wire"
)

// memory is what must be known about a payout from one Check to the next. It
// is kept as the handle, a short text: "sent=<id> asked=<id>,<id> failed=<code>".
type memory struct {
	sent  string   // the ConversationID that the payout's own answer gave
	asked []string // those of questions whose answers have not come
	// failed is the code by which the callback about the payout says that it
	// was not paid; bound says that the callback named sent.
	failed string
	bound  bool
}

// maxAsked is how many questions wait for their answers. An answer that takes
// longer than that many questions is not recognised, and asked for again.
const maxAsked = 2

func parseMemory(handle string) *memory {
	m := &memory{}
	for word := range strings.FieldsSeq(handle) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "sent":
			m.sent = value
		case "asked":
			m.asked = strings.Split(value, ",")
		case "failed", "unbound":
			if _, known := payoutCodes[value]; known {
				m.failed, m.bound = value, name == "failed"
			}
		}
	}
	return m
}

func (m *memory) String() string {
	words := make([]string, 0, 3)
	if m.sent != "" {
		words = append(words, "sent="+m.sent)
	}
	if len(m.asked) > 0 {
		words = append(words, "asked="+strings.Join(m.asked, ","))
	}
	switch {
	case m.failed != "" && m.bound:
		words = append(words, "failed="+m.failed)
	case m.failed != "":
		words = append(words, "unbound="+m.failed)
	}
	if len(words) == 0 {
		return "none" // an empty handle would leave the old one in place
	}
	return strings.Join(words, " ")
}

// ask remembers a question.
func (m *memory) ask(id string) {
	if m.asked = append(m.asked, id); len(m.asked) > maxAsked {
		m.asked = m.asked[len(m.asked)-maxAsked:]
	}
}

// forget drops a question that was answered, and reports whether it was one of
// ours. The same answer is read once: the next Check asks anew.
func (m *memory) forget(id string) bool {
	i := slices.Index(m.asked, id)
	if i < 0 {
		return false
	}
	m.asked = slices.Delete(m.asked, i, i+1)
	return true
}

// learn takes what the callback about the payout itself says. It must repeat
// our reference and, where the payout's answer was not lost, the ConversationID
// that came in it. A success is no news: the question will tell.
func (m *memory) learn(mail *resultMail, reference string) {
	if !strings.EqualFold(string(mail.Result.OriginatorConversationID), reference) {
		return
	}
	bound := m.sent != "" && mail.conversation() == m.sent
	if m.sent != "" && !bound {
		return
	}
	code := string(mail.Result.ResultCode)
	if _, known := payoutCodes[code]; known {
		m.failed, m.bound = code, bound
	} else if code == "0" {
		m.failed, m.bound = "", false
	}
}

// parameters are the named values of an answer. Daraja sends a single one
// without its list.
type parameters []parameter

type parameter struct {
	Key   wire.Text
	Value wire.Text // absent for some
}

// UnmarshalJSON takes a list, one object, or nothing.
func (p *parameters) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || bytes.Equal(b, []byte("null")):
		return nil
	case b[0] == '{':
		var one parameter
		if err := json.Unmarshal(b, &one); err != nil {
			return err
		}
		*p = parameters{one}
		return nil
	}
	return json.Unmarshal(b, (*[]parameter)(p))
}

// duplicate tells the words by which Daraja refuses a reference that it has
// seen. The code that comes with them is not documented.
func duplicate(message wire.Text) bool {
	return strings.Contains(strings.ToLower(string(message)), "duplicate")
}
