package till_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// retired are names that were replaced, because a reader could not understand
// them or because one thing had two names. The key is the name or, where the word
// is good elsewhere, the folder and the name; the value is what to write instead.
var retired = map[string]string{
	"Blind":             "AcceptOnly",
	"careful":           "reread",
	"DisabledWhy":       "DisableReason",
	"ErrIllegalMove":    "ErrIllegalTransition",
	"fileJSON":          "caseDetailJSON",
	"HandleOn":          "NewHandleConnection",
	"impatience":        "forceExitAfter",
	"KeepsMail":         "NeedsCallbackBody",
	"KindOf":            "PaymentEventKind",
	"MayBecome":         "CanBecome",
	"Moves":             "Transitions",
	"PayoutMoves":       "PayoutTransitions",
	"ResolutionStateOf": "NewResolutionState",
	"servants":          "helperServers",
	"server Share":      "nothing: deleted",
	"ShowCase":          "CaseDetailOf",
	"tellCallback":      "reportCallback",
	"Unwatched":         "NoBreaker",
	". house":           "packageRules",
	". room":            "packageRule",
	"api told":          "callback",
	"api whole":         "sharedAddress",
	"bench alone":       "singleCreate",
	"bench bare":        "webhookBaseline",
	"bench side":        "contender",
	"bench site":        "testbed",
	"bench told":        "webhookRun",
	"bench whole":       "fullLifecycle",
	"books Act":         "CaseAction",
	"books behind":      "runInBackground",
	"books crowd":       "suspectShare",
	"books Restored":    "MarkRestored",
	"books sift":        "readSlice",
	"books stands":      "remainingCause",
	"cmd/till proof":    "evidence",
	"cmd/till stage":    "simulatorServer",
	"engine foreign":    "otherConnection",
	"provider Asked":    "AnswerPending",
	"provider Called":   "CallbackReader",
	"provider Holder":   "Delayer",
	"provider Settle":   "NotFoundDelay",
	"store sight":       "clockReading",
	"store young":       "tablesWithoutStatistics",
}

// retiredWords must not come back in comments and guides either. Words that are
// also normal English are not here.
var retiredWords = []string{
	"servants", "impatience", "KeepsMail", "ErrIllegalMove", "MayBecome",
}

// declared calls f with every name that a Go file declares: functions, methods,
// types, fields, variables and constants, but no locals.
func declared(file *ast.File, f func(id *ast.Ident)) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f(d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, id := range s.Names {
						f(id)
					}
				case *ast.TypeSpec:
					f(s.Name)
					ast.Inspect(s.Type, func(n ast.Node) bool {
						if field, ok := n.(*ast.Field); ok {
							for _, id := range field.Names {
								f(id)
							}
						}
						_, parameters := n.(*ast.FuncType)
						return !parameters
					})
				}
			}
		}
	}
}

// replacement returns what to write instead of a name in a folder, "" if the name
// is fine.
func replacement(folder, name string) string {
	if with := retired[name]; with != "" {
		return with
	}
	for root := folder == "."; root || folder != "."; folder = path.Dir(folder) {
		if with := retired[folder+" "+name]; with != "" || root {
			return with
		}
	}
	return ""
}

// Names that were retired stay so: in declarations, in comments and in the
// guides. A decision record and the changelog tell of their time.
func TestGlossary(t *testing.T) {
	t.Parallel()
	words := regexp.MustCompile(`\b(` + strings.Join(retiredWords, "|") + `)\b`)
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		file = filepath.ToSlash(file)
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || file == "docs/adr"):
			return filepath.SkipDir
		case strings.HasSuffix(file, ".md") && file != "CHANGELOG.md" && file != "bench/NOTES.md":
			if word := words.FindString(page(t, file)); word != "" {
				t.Errorf("%s: %q is a word of the past", file, word)
			}
		case strings.HasSuffix(file, ".go") && file != "glossary_test.go":
			checkWords(t, file, words)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkWords(t *testing.T, path string, words *regexp.Regexp) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.ToSlash(filepath.Dir(path))
	declared(file, func(id *ast.Ident) {
		if with := replacement(folder, id.Name); with != "" {
			t.Errorf("%s: %s is a name of the past; write %s", set.Position(id.Pos()), id.Name, with)
		}
	})
	for _, group := range file.Comments {
		if word := words.FindString(group.Text()); word != "" {
			t.Errorf("%s: %q is a word of the past", set.Position(group.Pos()), word)
		}
	}
}
