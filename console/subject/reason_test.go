package subject

import (
	"regexp"
	"strings"
	"testing"

	"till"
	"till/console/shell"
	"till/console/words"
	"till/people"
	"till/store"
)

func TestReasonsInWords(t *testing.T) {
	t.Parallel()
	other := till.NewID(1).String()
	because := till.Because
	for _, c := range []struct {
		why    till.Reason
		en, fr string
	}{
		{because(till.ReasonOverdue), "its time is over and the operator has not decided", "le délai est passé et l’opérateur n’a pas tranché"},
		{because(till.ReasonOtherAmount, "10000 XAF", "5000 XAF").Then(till.ThenNotCredited), "the operator reports 10,000 XAF instead of 5,000 XAF. Nothing was credited.",
			"l’opérateur annonce 10\u202f000\u00a0XAF au lieu de 5\u202f000\u00a0XAF. Rien n’a été crédité."},
		{because(till.ReasonReversed, "125050 KES", "0"), "the operator took the money back: 1,250.50 KES from the wallet, 0 KES owed",
			"l’opérateur a repris l’argent\u00a0: 1\u202f250,50\u00a0KES du portefeuille, 0\u00a0KES restent dus"},
		{because(till.ReasonWasSuccess, "failed"), "the operator called it a success before and says now: failed", "l’opérateur a annoncé un succès et dit maintenant\u00a0: échoué"},
		{because(till.ReasonReceiptReused, "payment", other, other),
			"the operator reports a success under a receipt that another one has", "l’opérateur annonce un succès avec un reçu qu’un autre porte déjà"},
		{because(till.ReasonResolvedOn, "person:Jean", "00ff"), "by Jean", "par Jean"},
		{because(till.ReasonNoAnswerInTime), "no answer in time", "pas de réponse à temps"},
	} {
		for lang, want := range map[string]string{"en": c.en, "fr": c.fr} {
			v := &shell.Visit{Words: words.For(lang), Session: &people.Session{}}
			if got := CaseText(v, &store.Case{Why: c.why, Detail: c.why.String()}); plainSpaces(got) != plainSpaces(want) {
				t.Errorf("%s: %q is told as %q, want %q", lang, c.why, got, want)
			}
			if got := CallText(v, &store.Attempt{Why: c.why, Detail: c.why.String()}); plainSpaces(got) != plainSpaces(want) {
				t.Errorf("%s: of a call, %q is told as %q, want %q", lang, c.why, got, want)
			}
		}
	}
	for _, c := range []struct{ action, stored, en, fr string }{
		{"suspense", "9 XAF put aside: the operator reports another amount: 9 XAF instead of 5000 XAF", "9 XAF came in and is in no wallet", "9 XAF reçus, dans aucun portefeuille"},
		{"suspense", "9 XAF put aside no more: given back outside, by the word of Anne", "", ""},
		{"late_payout", "5000 XAF owed", "5,000 XAF is owed: the wallet had less", "5 000 XAF restent dus\u00a0: le portefeuille avait moins"},
		{"stray.credited", "it is the money of stray " + other, "money that nobody could place belongs to it", "de l’argent que personne ne pouvait placer lui appartient"},
		{"payout.release", "5000 XAF released", "", ""},
	} {
		for lang, want := range map[string]string{"en": c.en, "fr": c.fr} {
			v := &shell.Visit{Words: words.For(lang), Session: &people.Session{}}
			if got := DecidedText(v, &store.AuditRow{Action: c.action, Detail: c.stored}); plainSpaces(got) != plainSpaces(want) {
				t.Errorf("%s: %q is told as %q, want %q", lang, c.stored, got, want)
			}
		}
	}
}

func plainSpaces(s string) string {
	return strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(s)
}

// A text without a code may name other merchants: only the house reads it. What a person
// gave as the reason stands as it is.
func TestUnknownTextsAreForTheHouse(t *testing.T) {
	t.Parallel()
	staff := &shell.Visit{Words: words.For("fr"), Session: &people.Session{Memberships: []till.Membership{{Client: till.NewID(1), Role: till.RoleOwner}}}}
	house := &shell.Visit{Words: words.For("fr"), Session: &people.Session{Memberships: []till.Membership{{Client: till.House, Role: till.RoleSupport}}}}
	unknown := &store.Case{Detail: "something about another merchant"}
	if got := CaseText(staff, unknown); got != "" {
		t.Errorf("the merchant reads %q", got)
	}
	if got := CaseText(house, unknown); got != "something about another merchant" {
		t.Errorf("the house reads %q", got)
	}
	if got := ClosedText(staff, &store.Case{ClosedBy: "person:Anne", Reason: "vu avec MTN"}); got != "Anne: vu avec MTN" {
		t.Errorf("a person's reason is %q", got)
	}
	released := till.Because(till.ReasonNotHeld)
	if got := ClosedText(staff, &store.Case{ClosedBy: "engine", ClosedWhy: released, Reason: released.String()}); got != "il n’est plus retenu" {
		t.Errorf("the engine's reason is %q", got)
	}

	// Rows from before the codes are said in words, as far as their sentences name nobody.
	if got := CaseText(staff, &store.Case{Detail: till.Because(till.ReasonOverdue).String()}); got != inWords(staff, till.Because(till.ReasonOverdue)) || strings.Contains(got, "operator") {
		t.Errorf("an old case is %q", got)
	}
	if got := CaseText(staff, &store.Case{Detail: till.Because(till.ReasonReceiptReused, "payment", "p", "c").String()}); got != "" {
		t.Errorf("of an old case the merchant reads %q", got)
	}
	if got := CallText(staff, &store.Attempt{Detail: "no answer"}); got == "no answer" || got == "" {
		t.Errorf("an old call is %q", got)
	}
	if got := CallText(staff, &store.Attempt{Detail: "TARGET_NOT_FOUND"}); got != "TARGET_NOT_FOUND" {
		t.Errorf("an operator's words are %q", got)
	}
	resolved := &store.Attempt{Kind: store.AttemptResolve, Detail: "resolved by person:1 Jean, evidence sha256:ab"}
	if got := CallText(staff, resolved); got != "" {
		t.Errorf("of an old resolution the merchant reads %q", got)
	}
	if got := CallText(house, resolved); got != resolved.Detail {
		t.Errorf("of an old resolution the house reads %q", got)
	}
}

// Each reason has words in both languages. They have all that may be shown filled in, and
// nothing of what a merchant may not see.
func TestEveryReasonHasWords(t *testing.T) {
	t.Parallel()
	shown := map[string]string{"a": "12300 XAF", "b": "45600 XAF", "owed": "78900", "outcome": "failed", "state": "expired", "code": "TS9", "who": "person:Jean", "line": "31", "then": string(till.ThenNotPosted)}
	place := regexp.MustCompile(`\{[a-z]+\}`)
	for _, lang := range words.Languages {
		v := &shell.Visit{Words: words.For(lang), Session: &people.Session{}}
		for _, code := range till.ReasonCodes() {
			var values []string
			for _, name := range code.Places() {
				value := shown[name]
				if value == "" {
					value = "SECRET"
				}
				values = append(values, value)
			}
			got := inWords(v, till.Because(code, values...))
			if !v.Words.Has("told."+string(code)) || strings.Contains(got, "told.") || place.MatchString(got) {
				t.Errorf("%s: %s is said as %q", lang, code, got)
			}
			if strings.Contains(got, "SECRET") {
				t.Errorf("%s: %s shows what is for the house: %q", lang, code, got)
			}
			for name, text := range map[string]string{"a": "300", "b": "600", "owed": "900", "code": "TS9", "who": "Jean", "line": "31"} {
				if till.Because(code, values...).Value(name) != "" && !strings.Contains(got, text) {
					t.Errorf("%s: %s has no {%s}: %q", lang, code, name, got)
				}
			}
		}
		for _, end := range till.ReasonEnds {
			if !v.Words.Has("told.then_" + string(end)) {
				t.Errorf("%s: no words for the end %q", lang, end)
			}
		}
	}
}
