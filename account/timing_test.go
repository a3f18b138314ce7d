package account

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/access"
)

// F56: random keys fail at the checksum and cause no read of the database. Each read
// leaves an entry in the cache, also of a key that does not exist.
func TestARandomKeyIsRefusedWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	_, genuine := newClient(t, a, till.Test)
	reads := func() (n int) {
		for i := range a.cache.shards {
			n += len(a.cache.shards[i].entries)
		}
		return n
	}
	for n := range 2000 {
		text, _ := NewKey(till.Test)
		last := strings.IndexByte(base62, text[len(text)-1])
		text = text[:len(text)-1] + string(base62[(last+1+n%61)%62]) // any checksum but the right one
		for _, key := range []string{text, text[:n%len(text)], genuine[:len(genuine)-checksumLen] + text[len(text)-checksumLen:]} {
			if _, err := a.AuthenticateNow(t.Context(), key); err != errInvalidKey {
				t.Fatalf("the key %q: %v", key, err)
			}
			if _, err := a.FlagExposed(t.Context(), key, SeenInURL, ""); err != nil {
				t.Fatalf("the key %q in an address: %v", key, err)
			}
		}
	}
	if n := reads(); n != 0 {
		t.Errorf("%d keys were read from the database", n)
	}
	if _, err := a.AuthenticateNow(t.Context(), genuine); err != nil || reads() != 1 {
		t.Errorf("a genuine key: %v, %d reads", err, reads())
	}
}

// F55: an unknown key and a wrong secret go the same way: one read by the
// public id, kept for the same second, one comparison, one answer.
func TestAnUnknownKeyGoesTheWayOfAWrongSecret(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	now := time.Now()
	a.now = func() time.Time { return now }
	_, text := newClient(t, a, till.Test)
	_, id, secret, _ := ParseKey(text)
	keys := map[string]string{
		"unknown": forge(till.Test, strings.Repeat("A", idLen), secret),
		"wrong":   forge(till.Test, id, strings.Repeat("A", secretLen)),
	}
	var answers []error
	for name, key := range keys {
		_, keyID, tried, _ := ParseKey(key)
		if a.cache.get(keyID) != nil {
			t.Fatalf("%s: known before it was read", name)
		}
		_, err := a.Authenticate(t.Context(), key)
		e := a.cache.get(keyID)
		if e == nil || !e.readAt.Equal(now) {
			t.Fatalf("%s: what was read is not kept: %+v", name, e)
		}
		if again, err := a.lookup(t.Context(), keyID, tried, false); err != nil || again != e {
			t.Errorf("%s: read a second time: %v", name, err)
		}
		answers = append(answers, err)
	}
	if answers[0] != errInvalidKey || answers[1] != errInvalidKey {
		t.Errorf("answered %v", answers)
	}
	if err := a.store.View(t.Context(), func(tx *store.Tx) error {
		k, err := access.Key(t.Context(), tx, a.cache.get(id).session.Client.ID, id)
		if err == nil && k.SecretHash != hashSecret(secret) {
			t.Error("what is stored is not the secret's SHA-256")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// F55: secrets are compared in one place, by their hashes, in constant time,
// and before anything is decided by whether the key exists.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	compared, called := 0, map[string][]string{} // what each function calls, in order
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if s, ok := n.Fun.(*ast.SelectorExpr); ok {
						called[fn.Name.Name] = append(called[fn.Name.Name], s.Sel.Name)
					} else if i, ok := n.Fun.(*ast.Ident); ok {
						called[fn.Name.Name] = append(called[fn.Name.Name], i.Name)
					}
				case *ast.BinaryExpr:
					if (n.Op == token.EQL || n.Op == token.NEQ) && (mentions(n.X, "SecretHash", "hashSecret") || mentions(n.Y, "SecretHash", "hashSecret")) {
						// keyExists asks whether a key that was just drawn was written; nobody chose it.
						if compared++; fn.Name.Name != "keyExists" {
							t.Errorf("%s compares secrets with %s", files.Position(n.Pos()), n.Op)
						}
					}
				}
				return true
			})
		}
	}
	if got := strings.Join(called["matches"], " "); got != "hashSecret ConstantTimeCompare" {
		t.Errorf("a secret is judged by %s", got)
	}
	if got := strings.Join(called["authenticate"][:4], " "); got != "ParseKey lookup Now matches" {
		t.Errorf("a key is judged by %s first", got)
	}
	if compared != 1 {
		t.Errorf("%d plain comparisons of hashes, want the one of keyExists", compared)
	}
}

// mentions reports whether an expression names one of the words.
func mentions(e ast.Expr, words ...string) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if i, ok := n.(*ast.Ident); ok {
			for _, w := range words {
				found = found || i.Name == w
			}
		}
		return true
	})
	return found
}
