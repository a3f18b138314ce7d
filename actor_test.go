package till

import (
	"strings"
	"testing"
)

func TestAPersonCannotClaimToBeTheProgram(t *testing.T) {
	for _, name := range []string{"engine", "Engine", "ENGINE", "system", "till dev", "api", "api:k_1", "cli:root", "person:Anne", "key:1", "a:b", "",
		" engine", "engine ", "Anne\nengine", "Anne\x1b[2J", "Anne\u202e", "Anne\u200b", "\xff", strings.Repeat("a", MaxName+1),
		"0190b6a0-0000-7000-8000-000000000009", "0190b6a0-0000-7000-8000-000000000009 Anne"} {
		if actor, err := PersonActor(name); err == nil {
			t.Errorf("%q may act as %q", name, actor)
		}
	}
	for _, name := range []string{"Anne Ndala", "Awa N.", "José", "engineer", "y", strings.Repeat("é", MaxName)} {
		if actor, err := PersonActor(name); err != nil || actor != "person:"+name {
			t.Errorf("%q acts as %q, %v", name, actor, err)
		}
	}
}

func TestAPersonFromBeforeTheMarkIsTheSame(t *testing.T) {
	anne, err := PersonActor("Anne")
	if err != nil {
		t.Fatal(err)
	}
	for stored, same := range map[string]bool{"Anne": true, "person:Anne": true, "Awa": false, "engine": false, "person:Awa": false, "": false} {
		if SameActor(stored, anne) != same {
			t.Errorf("%q and %q: %t", stored, anne, !same)
		}
	}
}
