package money

import (
	"slices"
	"strings"

	"till/console/look"
	"till/console/subject"
	"till/people"
	"till/story"
)

// letter returns a text that asks the operator about a payment or payout which is open
// or has an open case: copied, it needs no more than a greeting. It is for those of the
// house who work on cases; "" for others.
func (v *visit) letter(s *story.Story) string {
	if !v.Session.MayHouse(people.CasesWork) || s.Subject.Final && len(s.OpenCases()) == 0 {
		return ""
	}
	b, t := &s.Subject, v.Words.T
	lines := []string{t("letter.about_" + string(s.Subject.Noun)), ""}
	line := func(key, value string) {
		if value != "" {
			lines = append(lines, t("letter."+key)+" "+value)
		}
	}
	if n := len(s.Attempts); n > 0 && !s.Attempts[n-1].Reference.IsZero() {
		line("ours", s.Attempts[n-1].Reference.String())
	}
	theirs := *b.ProviderReference
	if theirs == "" && s.Step != nil {
		theirs = s.Step.Handle
	}
	line("theirs", theirs)
	line("amount", look.Money(v.Words.Lang(), b.Amount))
	line("phone", subject.MaskPhone(b.Phone))
	if i := slices.IndexFunc(s.Timeline(), func(m story.Moment) bool { return m.Kind == story.MomentSent }); i >= 0 {
		sent := s.Timeline()[i].At
		line("sent", v.Clock.DateTime(sent)+" ("+v.Clock.Offset(sent)+"; "+sent.String()+")")
	}
	return strings.Join(append(lines, "", t("letter.ask")), "\n")
}
