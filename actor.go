package till

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// personMark comes before the name of a person in the audit log, so that no
// name can be taken for the engine, a key ("api:…") or a command ("cli:…").
// People of an installation will have ids, which come before their names.
const personMark = "person:"

// MaxName is the longest name of a person, in characters.
const MaxName = 64

// programNames are what the program calls itself and its parts: no person
// goes by them.
var programNames = []string{"engine", "system", "till", "till dev", "api", "cli", "key", "console", "person", "operator", "sandbox", "server", "worker"}

// PersonActor returns how the audit log names a person who gives this name.
// It refuses what is not one, what the program calls itself, and what begins
// with an id.
func PersonActor(name string) (string, error) {
	first, _, _ := strings.Cut(name, " ")
	_, notID := ParseID(first)
	switch {
	case name == "" || utf8.RuneCountInString(name) > MaxName || !utf8.ValidString(name) || strings.TrimSpace(name) != name ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "", fmt.Errorf("must name a person, in at most %d plain characters", MaxName)
	case slices.ContainsFunc(programNames, func(n string) bool { return strings.EqualFold(n, name) }):
		return "", fmt.Errorf("must name a person, and that is a name of the program itself")
	case strings.Contains(name, ":"):
		return "", fmt.Errorf("must name a person, and a name has no colon")
	case notID == nil:
		return "", fmt.Errorf("must name a person, and that begins with an id")
	}
	return personMark + name, nil
}

// SameActor reports whether a name that was stored is an actor's. Names of
// people from before they were marked have no mark.
func SameActor(stored, actor string) bool {
	return stored == actor || personMark+stored == actor
}
