package postgres

import (
	"slices"
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	for script, want := range map[string][]string{
		"":                              nil,
		"-- only; a client's comment\n": nil,
		"SELECT 1":                      {"SELECT 1"},
		"SELECT 1; SELECT ';' ;\n":      {"SELECT 1", "SELECT ';'"},
		"SELECT 'it''s; so'; SELECT 2":  {"SELECT 'it''s; so'", "SELECT 2"},
		"-- a; b's\nSELECT 1;-- c; d\n": {"-- a; b's\nSELECT 1"},
		`SELECT "a;b"; SELECT 2`:        {`SELECT "a;b"`, "SELECT 2"},
		"CREATE FUNCTION f() AS $$ BEGIN; RETURN ';'; END $$;\nSELECT 2;": {"CREATE FUNCTION f() AS $$ BEGIN; RETURN ';'; END $$", "SELECT 2"},
		"SELECT 'open; SELECT 2": {"SELECT 'open; SELECT 2"},
	} {
		got := commands(script)
		for i := range got {
			got[i] = strings.TrimSpace(got[i])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", script, got, want)
		}
	}
}
