package subject

import (
	"regexp"
	"strconv"
	"strings"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/people"
	"till/store"
)

// toldForms are the texts that the engine and the commands write beside a case or a
// call. They are stored in English; pages say them in the reader's language. Each
// group of a form is a value, and its name says what kind of value. What is in no group
// is not shown: other merchants' ids, names of the house, faults of the program.
var toldForms = []toldForm{
	{exactly(`its time is over and the operator has not decided`), "told.over"},
	{exactly(`its time is over, and no instance takes it: .*`), "told.stranded"},
	{exactly(`an old database was put back while it was open: .*`), "told.restored"},
	{exactly(`an old database was put back, and this may be the retry .*`), "told.retry"},
	{exactly(`.*: it is not sent before that is released`), "told.held"},
	{exactly(`payouts are held: it was not sent`), "told.held"},
	{exactly(`it is no longer held`), "told.released"},
	{exactly(`the restore was released`), "told.released"},
	{exactly(`the operator has it`), "told.has"},
	{exactly(`the operator answers with a status that is not known: (?P<code>.*)`), "told.status"},
	{exactly(`the operator reports a success under a receipt that another .*`), "told.receipt"},
	{exactly(`the operator gave it the id of another's request, .*`), "told.handle"},
	{exactly(`a callback for it names the operator's id of another's request; .*`), "told.handle_call"},
	{exactly(`the operator called it a success before and says (?P<outcome>\w+) now`), "told.was_success"},
	{exactly(`money came in for it, and the operator says (?P<outcome>\w+) now`), "told.came"},
	{exactly(`money went out for it, and the operator says (?P<outcome>\w+) now`), "told.went"},
	{exactly(`the operator reports a second success with another receipt`), "told.second"},
	{exactly(`the operator reports a success of a payout that was never sent`), "told.never_sent"},
	{exactly(`the operator reports another (?:amount|currency): (?P<a>\d+ [A-Z]{3}) instead of (?P<b>\d+ [A-Z]{3})(?P<then>.*)`), "told.other_amount"},
	{exactly(`the operator reports another reference(?P<then>.*)`), "told.other_reference"},
	{exactly(`the wallet cannot hold the money(?P<then>.*)`), "told.full"},
	{exactly(`money came after it had ended as (?P<state>\w+); it was credited`), "told.late"},
	{exactly(`it was paid after it had ended as (?P<state>\w+); the wallet was debited`), "told.late_payout"},
	{exactly(`the operator took the money back: (?P<minor>\d+) (?P<currency>[A-Z]{3}) from the wallet, (?P<owed>\d+) owed by the client`), "told.back"},
	{exactly(`(?P<a>\d+ [A-Z]{3}) put aside: .*`), "told.aside"},
	{exactly(`(?P<a>\d+ [A-Z]{3}) owed`), "told.owed"},
	{exactly(`it is the money of stray .*`), "told.stray"},
	{exactly(`nothing can be recorded about it: .*`), "told.fault"},
	{exactly(`the answer could not be recorded.*`), "told.fault"},
	{exactly(`the step could not be claimed.*`), "told.fault"},
	{exactly(`the call panicked.*`), "told.fault"},
	{exactly(`an answer could be recorded`), "told.recorded"},
	{exactly(`the (?:payment|payout) was resolved as (?P<outcome>\w+)`), "told.resolved"},
	{exactly(`resolved by (?P<who>.*?)(?:, evidence sha256:[0-9a-f]+)?`), "told.resolved_by"},
	{exactly(`\w+: statement .* sha256:[0-9a-f]+(?: line (?P<line>\d+))?`), "told.statement"},
	{exactly(`refused before it was taken`), "told.refused"},
	{exactly(`no answer in time`), "told.no_answer"},
	{exactly(`no answer`), "told.no_answer"},
}

// toldForm is a text with values in it, and the key of its words.
type toldForm struct {
	form *regexp.Regexp
	key  string
}

func exactly(form string) *regexp.Regexp { return regexp.MustCompile(`^(?s:` + form + `)$`) }

// toldEnds are what follows after a value called then.
var toldEnds = map[string]string{
	"; nothing was credited":                             "told.then_not_credited",
	" with the receipt; the payment was credited before": "told.then_credited",
	" taken back; nothing was debited":                   "told.then_not_debited",
	"; nothing was posted":                               "told.then_not_posted",
}

// says returns a stored text in the reader's language. It is "", false for a text that
// is none of toldForms.
func says(v *shell.Visit, text string) (string, bool) {
	for _, f := range toldForms {
		m := f.form.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		var args []any
		end := ""
		for i, name := range f.form.SubexpNames() {
			switch name {
			case "":
			case "then":
				if key := toldEnds[m[i]]; key != "" {
					end = " " + v.Words.T(key)
				}
			case "minor":
				args = append(args, "a", toldMinor(v, m[i], m[i+1]), "b", toldMinor(v, m[i+2], m[i+1]))
			default:
				args = append(args, name, toldValue(v, name, m[i]))
			}
		}
		return v.Words.T(f.key, args...) + end, true
	}
	return "", false
}

// toldValue returns a value of a stored text as the reader's language has it.
func toldValue(v *shell.Visit, name, value string) string {
	switch name {
	case "outcome":
		if key := "outcome." + value; v.Words.Has(key) {
			return v.Words.T(key)
		}
	case "state":
		if key := "state." + value; v.Words.Has(key) {
			return v.Words.T(key)
		}
	case "a", "b":
		minor, currency, _ := strings.Cut(value, " ")
		return toldMinor(v, minor, currency)
	case "who":
		return till.NameOfActor(value)
	case "line":
		if value == "" {
			return "—"
		}
	}
	return value
}

func toldMinor(v *shell.Visit, minor, currency string) string {
	n, _ := strconv.ParseInt(minor, 10, 64) // the form has digits only
	return look.Money(v.Words.Lang(), till.Money{Minor: n, Currency: currency})
}

// CaseText returns why a case was opened. A text in no form of ours may name others:
// people of the house see it, a merchant's staff does not.
func CaseText(v *shell.Visit, text string) string {
	if said, ok := says(v, text); ok {
		return said
	}
	if v.Session.MayHouse(people.ClientsLook) {
		return text
	}
	return ""
}

// ClosedText returns who closed a case, and why. A person's reason is as it was
// written.
func ClosedText(v *shell.Visit, c *store.Case) string {
	who, why := till.NameOfActor(c.ClosedBy), InWords(v, c.Reason)
	if c.ClosedBy == "engine" {
		return why
	}
	return strings.Trim(who+": "+why, ": ")
}

// InWords is says, and the text itself where it is in no form of ours.
func InWords(v *shell.Visit, text string) string {
	if said, ok := says(v, text); ok {
		return said
	}
	return text
}
