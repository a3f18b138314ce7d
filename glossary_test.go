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
	"slices"
	"strings"
	"testing"
)

// retired are names that were replaced, because a reader could not understand
// them or because one thing had two names. The key is the name or, where the word
// is good elsewhere, the folder and the name; the value is what to write instead.
var retired = map[string]string{
	"Absorb":            "TakeQueued",
	"AfterLate":         "NextLateRead",
	"Alike":             "Subject",
	"AnswerOf":          "AnswerFromPerson",
	"BeginWith":         "BeginRecording",
	"Blind":             "AcceptOnly",
	"careful":           "reread",
	"CheckCatalogue":    "CheckMarket",
	"claimSingly":       "claimOneByOne",
	"Closing":           "CaseClosure",
	"ComparedByID":      "ReconcileRowsByID",
	"ComparedPayment":   "till.SubjectPayment",
	"ComparedPayout":    "till.SubjectPayout",
	"deafWriter":        "discardWriter",
	"Decider":           "Rules",
	"Deliverer":         "Dispatcher",
	"Desk":              "Processor, Worker or Intake",
	"DeskConfig":        "Config",
	"DisabledWhy":       "DisableReason",
	"Door":              "CallbackPolicy",
	"DrainTo":           "ThrottleUntil",
	"errAgain":          "ErrRetry",
	"errBeforeCommit":   "nothing: see Commit",
	"ErrIllegalMove":    "ErrIllegalTransition",
	"ErrRefused":        "ErrConstraint",
	"ExamineFile":       "sqlite.Diagnose",
	"ExamineServer":     "postgres.Diagnose",
	"fileJSON":          "caseDetailJSON",
	"fillReserves":      "refillPrefetched",
	"fullness":          "slotWait",
	"HandleOn":          "NewHandleConnection",
	"heed":              "readDeferred or dispatchClients",
	"impatience":        "forceExitAfter",
	"KeepsMail":         "NeedsCallbackBody",
	"KindOf":            "EventKind",
	"knowsEnds":         "Dialect",
	"MakeDue":           "RetryNow",
	"MakeWaitingDue":    "RetrySubjectNow",
	"maxAgain":          "maxRetries",
	"MaxMail":           "MaxCallbackBody",
	"MayBecome":         "CanBecome",
	"Moves":             "Transitions",
	"noted":             "alreadyRecorded",
	"Nouns":             "CountedTables",
	"Offers":            "CanProbe",
	"OpenSpans":         "OpenRanges",
	"patientConn":       "deadlineConn",
	"Paymaster":         "Disburser",
	"PayoutMoves":       "PayoutTransitions",
	"PendingOf":         "PendingForSubjects",
	"plainPayment":      "usualPayment",
	"Poster":            "HTTPSender",
	"ReplayOr":          "ReplayOrReject",
	"ResolutionStateOf": "NewResolutionState",
	"NewPaymaster":      "NewDisburser",
	"RetryIn":           "RetryAfter",
	"rowsEach":          "QueryEach",
	"SealKey":           "ChainKey",
	"SealOf":            "NextLink",
	"Seek":              "FindByStatement",
	"servants":          "helperServers",
	"ServerHealth":      "Diagnosis",
	"shortfall":         "timeToToken",
	"ShowCase":          "CaseDetailOf",
	"SievedEvent":       "FastEvent",
	"SievedPayment":     "FastPayment",
	"SieveEvents":       "VerifyEventsFast",
	"SievePayments":     "VerifyPaymentsFast",
	"Sought":            "StatementKey",
	"SpanWhy":           "RangeReason",
	"switchOff":         "disable",
	"switchOn":          "enable",
	"tellCallback":      "reportCallback",
	"Tried":             "recordTry",
	"unable":            "recordUnactionable",
	"UnfoldedClients":   "ClientsToRollUp",
	"unhurried":         "WithoutTimeout",
	"unmeasured":        "tablesWithoutStatistics",
	"UnsealedClients":   "ClientsToChain",
	"Unwatched":         "NoBreaker",
	"UpdateBehind":      "UpdateBackground",
	"Vault":             "SecretSealer",
	"wakeOne":           "recordCallback",
	"WakeWith":          "RecordCallback",
	". house":           "packageRules",
	". room":            "packageRule",
	"account did":       "auditEntry",
	"account join":      "shareRead",
	"account opens":     "matches",
	"account used":      "lastUse",
	"api admit":         "authorizeAndRead",
	"api call":          "exchange",
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
	"config Kind":       "till.SubjectKind",
	"engine Again":      "ReopenCase",
	"engine ahead":      "prefetch",
	"engine Book":       "ApplyEntry",
	"engine Change":     "Recording",
	"engine Creation":   "CreateCall",
	"engine Enter":      "AddEntry",
	"engine foreign":    "otherConnection",
	"engine Grant":      "SendPermit",
	"engine Job":        "Instruction",
	"engine jobs":       "recentSends",
	"engine judge":      "evaluate",
	"engine kept":       "fromCache",
	"engine Look":       "PollInterval",
	"engine moved":      "changed",
	"engine Note":       "NoteAnswer",
	"engine pace":       "backoff",
	"engine Post":       "AddTransaction",
	"engine Pulse":      "HealthInterval",
	"engine pulse":      "syncHealth",
	"engine Refused":    "RecordErr",
	"engine reserve":    "prefetchedTokens",
	"engine Settlement": "ResolveItem",
	"engine turn":       "nextState",
	"engine want":       "requestProbe",
	"payout decided":    "createBatch",
	"payout purse":      "wantWallet",
	"provider Asked":    "AnswerPending",
	"provider Called":   "CallbackReader",
	"provider Holder":   "Delayer",
	"provider memory":   "handleState",
	"provider Settle":   "NotFoundDelay",
	"server complete":   "setDefaults",
	"server measure":    "analyzeTables",
	"server Share":      "nothing: deleted",
	"store ByKey":       "PreferIndexes",
	"store changing":    "mutableColumns",
	"store closer":      "narrow",
	"store Compare":     "ReconcileRows",
	"store Compared":    "ReconcileRow",
	"store Counts":      "CounterDelta",
	"store Fold":        "RollUp",
	"store gate":        "writeQueue",
	"store harmless":    "keepsConn",
	"store KindPayment": "till.SubjectPayment",
	"store KindPayout":  "till.SubjectPayout",
	"store later":       "Defer",
	"store Listed":      "EventsListedFrom",
	"store lost":        "wrapConnErr",
	"store Moved":       "PostedSubject",
	"store noun":        "table",
	"store owe":         "enqueue",
	"store owed":        "deferred",
	"store patience":    "a name that says which time it is",
	"store patient":     "withDeadline",
	"store ragged":      "partialHour",
	"store reach":       "begin",
	"store rowsOf":      "QueryByKey",
	"store saw":         "observeClock",
	"store Seal":        "ChainLink",
	"store Seed":        "bench/seed",
	"store setAll":      "DeferExactly",
	"store sight":       "clockReading",
	"store silence":     "readTimeout",
	"store Span":        "LogRange",
	"store stretch":     "idRange",
	"store touched":     "ExecReport",
	"store Try":         "DeliveryAttempt",
	"store young":       "tablesWithoutStatistics",
	"tokens flight":     "fetchInFlight",
	"tokens got":        "fetched",
	"tokens Keeper":     "Cache",
	"tokens look":       "lookup",
	"webhook Answer":    "Response",
	"webhook holding":   "endpointLease",
	"webhook leave":     "stopWorker",
	"webhook left":      "leftover",
	"webhook material":  "chunkInput",
	"webhook offer":     "startWorker",
	"webhook runner":    "endpointWorker",
	"webhook window":    "chunk",
}

// retiredWords must not come back in comments and guides either. Words that are
// also normal English are not here.
var retiredWords = []string{
	"AfterLate", "Alike", "ComparedPayment", "ComparedPayout", "DrainTo", "MakeDue", "OpenSpans", "SpanWhy",
	"UnfoldedClients", "BeginWith", "Blind", "Deliverer", "DeskConfig", "Door", "ErrIllegalMove", "HandleOn", "Keeper",
	"KeepsMail", "MaxMail", "MayBecome", "Poster", "ReplayOr", "RunFold", "RunSeal", "ShowCase", "Unwatched", "WakeWith",
	"claimSingly", "deafWriter", "fillReserves", "impatience", "servants", "sieved", "tellCallback",
}

// retiredProse are words of ours where the trade has one: who, the caller, the reader, any.
// They must not come back in comments and pages. The page of metrics quotes their texts.
var retiredProse = []string{"whoever", "Whoever"}

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
	words := anyOf(retiredWords)
	all := anyOf(slices.Concat(retiredWords, retiredProse))
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		file = filepath.ToSlash(file)
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || file == "docs/adr"):
			return filepath.SkipDir
		case strings.HasSuffix(file, ".md") && file != "CHANGELOG.md" && file != "bench/NOTES.md":
			in := all
			if file == "docs/guide/metrics.md" {
				in = words
			}
			if word := in.FindString(page(t, file)); word != "" {
				t.Errorf("%s: %q is a word of the past", file, word)
			}
		case strings.HasSuffix(file, ".go") && file != "glossary_test.go":
			checkWords(t, file, all)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// anyOf matches any of the words, whole.
func anyOf(words []string) *regexp.Regexp {
	return regexp.MustCompile(`\b(` + strings.Join(words, "|") + `)\b`)
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
