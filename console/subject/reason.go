package subject

import (
	"strconv"
	"strings"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/people"
	"till/store"
)

// inWords says a reason in the reader's language. Values of other places than these are not
// shown: other merchants' ids, names of the house, faults of the program.
func inWords(v *shell.Visit, r till.Reason) string {
	var args []any
	currency, end := "", ""
	for _, place := range r.Code.Places() {
		value := r.Value(place)
		switch place {
		case "a", "b":
			var minor string
			minor, currency, _ = strings.Cut(value, " ")
			args = append(args, place, money(v, minor, currency))
		case "owed": // in the currency before
			args = append(args, "b", money(v, value, currency))
		case "outcome", "state":
			if key := place + "." + value; v.Words.Has(key) {
				value = v.Words.T(key)
			}
			args = append(args, place, value)
		case "who":
			args = append(args, place, till.NameOfActor(value))
		case "code", "line":
			args = append(args, place, value)
		case "then":
			if value != "" {
				end = " " + v.Words.T("told.then_"+value)
			}
		}
	}
	return v.Words.T("told."+string(r.Code), args...) + end
}

func money(v *shell.Visit, minor, currency string) string {
	n, _ := strconv.ParseInt(minor, 10, 64) // it was written from a number
	return look.Money(v.Words.Lang(), till.Money{Minor: n, Currency: currency})
}

// CaseText returns why a case was opened.
func CaseText(v *shell.Visit, c *store.Case) string {
	if c.Why.IsZero() {
		return forHouse(v, c.Detail)
	}
	return inWords(v, c.Why)
}

// ClosedText returns who closed a case, and why. A person's reason stands as it was
// written.
func ClosedText(v *shell.Visit, c *store.Case) string {
	who, why := till.NameOfActor(c.ClosedBy), c.Reason
	if !c.ClosedWhy.IsZero() {
		why = inWords(v, c.ClosedWhy)
	}
	if c.ClosedBy == "engine" {
		return why
	}
	return strings.Trim(who+": "+why, ": ")
}

// CallText returns what came of a call; an operator's words stand as they were written. A
// resolution without a code names who decided, with their id and the evidence.
func CallText(v *shell.Visit, a *store.Attempt) string {
	switch {
	case !a.Why.IsZero():
		return inWords(v, a.Why)
	case a.Kind == store.AttemptResolve:
		return forHouse(v, a.Detail)
	}
	if r := bareReason(a.Detail); !r.IsZero() {
		return inWords(v, r)
	}
	return a.Detail
}

// Acts of the engine about money.
const (
	actSuspense = "suspense"
	actStray    = "stray.credited"
)

// DecidedText returns what the engine decided about money. An audit row has no code: its
// action says what was done, and its text begins with the amount.
func DecidedText(v *shell.Visit, a *store.AuditRow) string {
	minor, rest, _ := strings.Cut(a.Detail, " ")
	currency, what, _ := strings.Cut(rest, " ")
	switch {
	case a.Action == actStray:
		return v.Words.T("told.stray")
	case a.Action == actSuspense && strings.HasPrefix(what, "put aside: "):
		return v.Words.T("told.aside", "a", money(v, minor, currency))
	case what == "owed":
		return v.Words.T("told.owed", "a", money(v, minor, currency))
	}
	return forHouse(v, a.Detail)
}

// forHouse returns a stored text that has no code: in words if it is a sentence of ours
// without values, and else in English as it is, for people of the house alone, because it
// may name others.
func forHouse(v *shell.Visit, text string) string {
	if r := bareReason(text); !r.IsZero() {
		return inWords(v, r)
	}
	if v.Session.MayHouse(people.ClientsLook) {
		return text
	}
	return ""
}

// bareReason returns the reason without values whose sentence a text is, the zero one if it
// is none.
func bareReason(text string) (r till.Reason) {
	for _, code := range till.ReasonCodes() {
		if len(code.Places()) == 0 && till.Because(code).String() == text {
			return till.Because(code)
		}
	}
	return r
}
