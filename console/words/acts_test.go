package words_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"till/ledger"
)

// act is what an act looks like in the code.
var act = regexp.MustCompile(`^[a-z_]+(\.[a-z_]+)*$`)

// auditors are the functions that take an act among their texts.
var auditors = []string{"AddAudit", "auditedUpdate", "AuditClients", "auditAllClients", "changeGenerations", "noteRefusal", "release", "changeAccess", "end", "audit", "auditLink"}

// actsInCode returns every act that the packages which write audit rows name: as
// a field or variable called action, as a constant Act…, as an argument.
func actsInCode(t testing.TB) (acts []string) {
	add := func(e ast.Expr) {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			text, _ := strconv.Unquote(l.Value)
			if act.MatchString(text) && text != "engine" {
				acts = append(acts, text)
			}
		}
	}
	for _, pkg := range []string{"account", "people", "webhook", "books", "privacy", "reconcile", "recovery", "story", "upkeep", "engine", "collect", "checkout", "payout", "console"} {
		files, _ := filepath.Glob(filepath.Join("..", "..", pkg, "*.go"))
		below, _ := filepath.Glob(filepath.Join("..", "..", pkg, "*", "*.go"))
		files = append(files, below...)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool { actsIn(n, add); return true })
		}
	}
	for _, kind := range []ledger.EntryKind{ledger.Collection, ledger.LateCollection, ledger.CollectionReversal, ledger.Fee, ledger.Adjustment, ledger.Suspense, ledger.Payout, ledger.LatePayout, ledger.Refund, ledger.LateRefund} {
		acts = append(acts, string(kind))
	}
	acts = append(acts, "export.payments", "export.payouts", "export.audit")
	slices.Sort(acts)
	return slices.Compact(acts)
}

func isAction(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return strings.EqualFold(e.Name, "action")
	case *ast.SelectorExpr:
		return strings.EqualFold(e.Sel.Name, "action")
	}
	return false
}

// actsIn adds the acts that one node names.
func actsIn(n ast.Node, add func(ast.Expr)) {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if isAction(n.Key) {
			add(n.Value)
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if isAction(to) && i < len(n.Rhs) {
				add(n.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if (strings.HasPrefix(name.Name, "Act") || strings.HasPrefix(name.Name, "action")) && i < len(n.Values) {
				add(n.Values[i])
			}
		}
	case *ast.CompositeLit:
		if name, ok := n.Type.(*ast.Ident); ok && name.Name == "auditEntry" && len(n.Elts) > 0 {
			add(n.Elts[0])
		}
	case *ast.CallExpr:
		name := ""
		switch f := n.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
		}
		if slices.Contains(auditors, name) {
			for _, a := range n.Args {
				if l, ok := a.(*ast.BasicLit); ok && (strings.Contains(l.Value, ".") || l.Value == `"resolve"`) {
					add(a)
				}
			}
		}
	}
}

// The reader of the code finds the acts that are known to be there.
func TestActsAreFound(t *testing.T) {
	t.Parallel()
	acts := actsInCode(t)
	for _, want := range []string{"sign_in", "key.create", "key.revoke", "webhook_endpoint.create", "event.redeliver", "role.set", "role.remove", "person.enable", "client.suspend", "method.enable",
		"payout.cancel", "payouts.hold", "restored", "stray.credited", "resolve", "open_case", "note.add", "password.set", "collection", "export.statement", "phone.reveal", "codes.set", "session.end", "checkout.create", "checkout.cancel", "link.create", "link.change"} {
		if !slices.Contains(acts, want) {
			t.Errorf("%s is not found in the code: %v", want, acts)
		}
	}
}
