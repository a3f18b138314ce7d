package subject

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"till"
	"till/console/shell"
	"till/console/words"
	"till/people"
	"till/store"
)

func TestToldTexts(t *testing.T) {
	t.Parallel()
	other := till.NewID(1).String()
	for _, c := range []struct{ stored, en, fr string }{
		{"its time is over and the operator has not decided", "its time is over and the operator has not decided", "le délai est passé et l’opérateur n’a pas tranché"},
		{"the operator reports another amount: 10000 XAF instead of 5000 XAF; nothing was credited", "the operator reports 10,000 XAF instead of 5,000 XAF. Nothing was credited.",
			"l’opérateur annonce 10\u202f000\u00a0XAF au lieu de 5\u202f000\u00a0XAF. Rien n’a été crédité."},
		{"the operator took the money back: 125050 KES from the wallet, 0 owed by the client", "the operator took the money back: 1,250.50 KES from the wallet, 0 KES owed",
			"l’opérateur a repris l’argent\u00a0: 1\u202f250,50\u00a0KES du portefeuille, 0\u00a0KES restent dus"},
		{"the operator called it a success before and says failed now", "the operator called it a success before and says now: failed", "l’opérateur a annoncé un succès et dit maintenant\u00a0: échoué"},
		{"the operator reports a success under a receipt that another payment has: " + other + " of client " + other,
			"the operator reports a success under a receipt that another one has", "l’opérateur annonce un succès avec un reçu qu’un autre porte déjà"},
		{"resolved by person:Jean, evidence sha256:00ff", "by Jean", "par Jean"},
		{"9 XAF put aside: the operator reports another amount: 9 XAF instead of 5000 XAF", "9 XAF came in and is in no wallet", "9 XAF reçus, dans aucun portefeuille"},
		{"5000 XAF owed", "5,000 XAF is owed: the wallet had less", "5 000 XAF restent dus\u00a0: le portefeuille avait moins"},
		{"it is the money of stray " + other, "money that nobody could place belongs to it", "de l’argent que personne ne pouvait placer lui appartient"},
		{"no answer in time", "no answer in time", "pas de réponse à temps"},
	} {
		for lang, want := range map[string]string{"en": c.en, "fr": c.fr} {
			v := &shell.Visit{Words: words.For(lang), Session: &people.Session{}}
			if got := CaseText(v, c.stored); plainSpaces(got) != plainSpaces(want) {
				t.Errorf("%s: %q is told as %q, want %q", lang, c.stored, got, want)
			}
		}
	}
}

func plainSpaces(s string) string {
	return strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(s)
}

// A text that no form knows may name other merchants: only the house reads it. What a
// person gave as the reason stands as it is.
func TestUnknownTextsAreForTheHouse(t *testing.T) {
	t.Parallel()
	staff := &shell.Visit{Words: words.For("fr"), Session: &people.Session{Memberships: []till.Membership{{Client: till.NewID(1), Role: till.RoleOwner}}}}
	house := &shell.Visit{Words: words.For("fr"), Session: &people.Session{Memberships: []till.Membership{{Client: till.House, Role: till.RoleSupport}}}}
	if got := CaseText(staff, "something about another merchant"); got != "" {
		t.Errorf("the merchant reads %q", got)
	}
	if got := CaseText(house, "something about another merchant"); got != "something about another merchant" {
		t.Errorf("the house reads %q", got)
	}
	if got := ClosedText(staff, &store.Case{ClosedBy: "person:Anne", Reason: "vu avec MTN"}); got != "Anne: vu avec MTN" {
		t.Errorf("a person's reason is %q", got)
	}
	if got := ClosedText(staff, &store.Case{ClosedBy: "engine", Reason: "it is no longer held"}); got != "il n’est plus retenu" {
		t.Errorf("the engine's reason is %q", got)
	}
}

// Each text that a case is opened with begins as a form of ours does, and ends as one.
func TestEveryTextOfACaseHasAForm(t *testing.T) {
	t.Parallel()
	opens, says := []string{"OpenCase", "ReopenCase", "suspend"}, []string{"overdue", "Mismatch", "faultOf"}
	seen := 0
	check := func(e ast.Expr) {
		text, first := literalsOf(e)
		if text == "" {
			return
		}
		seen++
		if !first {
			if _, ok := toldEnds[text]; !ok && text != ": it is not sent before that is released" {
				t.Errorf("no end of a form is %q", text)
			}
			return
		}
		known := slices.ContainsFunc(toldForms, func(f toldForm) bool {
			_, form, _ := strings.Cut(f.form.String(), "(?s:")
			form, _, _ = strings.Cut(form, "(?")
			form, _, _ = strings.Cut(form, ".*")
			return len(form) > 8 && (strings.HasPrefix(text, form[:len(form)-1]) || strings.HasPrefix(form, text))
		})
		if !known {
			t.Errorf("no form begins as %q does", text)
		}
	}
	for _, pkg := range []string{"engine", "collect", "payout"} {
		files, _ := filepath.Glob(filepath.Join("..", "..", pkg, "*.go"))
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(opens, s.Sel.Name) {
						for _, arg := range n.Args {
							check(arg)
						}
					}
				case *ast.FuncDecl:
					if slices.Contains(says, n.Name.Name) {
						ast.Inspect(n.Body, func(n ast.Node) bool {
							if r, ok := n.(*ast.ReturnStmt); ok {
								check(r.Results[0])
							}
							return true
						})
					}
				}
				return true
			})
		}
	}
	if seen < 20 {
		t.Errorf("%d texts were found; there are more", seen)
	}
}

// literalsOf returns the first text of a sum of texts, or the last if the first is
// a value.
func literalsOf(e ast.Expr) (text string, first bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ = strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING
	case *ast.CallExpr: // fmt.Sprintf
		if s, ok := e.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Sprintf" {
			text, _ = literalsOf(e.Args[0])
			text, _, _ = strings.Cut(text, "%")
			return text, true
		}
	case *ast.BinaryExpr:
		if text, first = literalsOf(e.X); text != "" && first {
			return text, true
		}
		text, _ = literalsOf(e.Y)
		return text, false
	}
	return "", false
}
