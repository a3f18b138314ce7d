package postgres

import (
	"strings"
	"testing"

	"till/internal/db"
)

// No session compiles its statements, unless the address of the database says so.
func TestNoStatementIsCompiled(t *testing.T) {
	for _, a := range []db.Access{db.Read, db.Write} {
		if s := Settings(nil, a); !strings.Contains(s, "SET jit = 'off';") {
			t.Errorf("access %v: %s", a, s)
		}
		if s := Settings(map[string]string{"jit": "on"}, a); strings.Contains(s, "jit") {
			t.Errorf("the address says jit=on, access %v: %s", a, s)
		}
	}
}
