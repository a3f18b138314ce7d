package words_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"till"
	"till/books"
	"till/checkout"
	"till/console/words"
	"till/engine"
	"till/payout"
	"till/people"
	"till/provider/sandbox"
	"till/reconcile"
	"till/store"
	"till/store/webhooks"
	"till/story"
	"till/webhook"
)

// place is a named place of a text.
var place = regexp.MustCompile(`\{[a-z0-9]+\}`)

// Both languages have the same keys, with the same places.
func TestCataloguesAreAlike(t *testing.T) {
	t.Parallel()
	en, fr := texts(t, "en.toml"), texts(t, "fr.toml")
	for key := range en {
		if fr[key] == nil {
			t.Errorf("French has no %s", key)
		}
	}
	for key, french := range fr {
		english := en[key]
		if english == nil {
			t.Errorf("English has no %s", key)
			continue
		}
		if len(english) != len(french) {
			t.Errorf("%s has a plural in one language only", key)
		}
		want := places(english[0])
		for _, text := range slices.Concat(english, french) {
			if got := places(text); got != want {
				t.Errorf("%s: places %s in %q, want %s", key, got, text, want)
			}
		}
	}
}

// Each thing has one word in French, on every page, and French has its own apostrophe.
func TestFrenchKeepsToItsWords(t *testing.T) {
	t.Parallel()
	en, fr := texts(t, "en.toml"), texts(t, "fr.toml")
	of := map[*regexp.Regexp]string{regexp.MustCompile(`(?i)payout`): "décaissement", regexp.MustCompile(`(?i)\bcases\b`): "dossier"}
	for key, french := range fr {
		for i, text := range french {
			if strings.Contains(text, "'") {
				t.Errorf("%s has the apostrophe of a typewriter: %s", key, text)
			}
			for english, word := range of {
				if english.MatchString(en[key][i]) && !strings.Contains(strings.ToLower(text), word) {
					t.Errorf("%s is %q in English and has no %q in French: %s", key, en[key][i], word, text)
				}
			}
		}
	}
}

// texts returns the forms of every key of a catalogue.
func texts(t *testing.T, file string) map[string][]string {
	t.Helper()
	var tables map[string]map[string]any
	if _, err := toml.DecodeFile(file, &tables); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for table, keys := range tables {
		for key, value := range keys {
			switch v := value.(type) {
			case string:
				out[table+"."+key] = []string{v}
			case map[string]any:
				out[table+"."+key] = []string{v["one"].(string), v["other"].(string)}
			}
		}
	}
	return out
}

func places(text string) string {
	all := place.FindAllString(text, -1)
	slices.Sort(all)
	all = slices.DeleteFunc(all, func(p string) bool { return p == "{n}" }) // a singular need not say its number
	return strings.Join(slices.Compact(all), " ")
}

// families are the keys that are put together from a word of ours; each says
// which words there are. A new reason, case or permission without words fails.
func families(t testing.TB) map[string][]string {
	f := map[string][]string{
		"told.": list(till.ReasonCodes()), "told.then_": list(till.ReasonEnds),
		"why.": list(story.WhyCodes), "next.": list(story.Parties[1:]), "role.": slices.Concat(list(till.StaffRoles), list(till.HouseRoles)),
		"group.":    list([]story.Group{story.AboutAll, story.AboutOperator, story.AboutMoney, story.AboutWebhooks, story.AboutPeople}),
		"delivery.": list([]webhooks.DeliveryStatus{webhooks.DeliveryPending, webhooks.DeliveryDelivered, webhooks.DeliverySuperseded, webhooks.DeliveryExhausted, webhooks.DeliveryDisabled}),
		"case.": {engine.CaseOverdue, engine.CaseRefundedBeyond, engine.CaseRefundedElsewhere, engine.CaseRefundedAndReversed, engine.CasePaidTwice, checkout.CasePageAbuse, checkout.CasePageReported, engine.CaseUnknownStatus, engine.CaseMismatch, engine.CaseContradiction, engine.CaseLateMoney, engine.CaseReversed,
			engine.CaseReceiptReused, engine.CaseHandleReused, engine.CaseWalletFull, engine.CaseQuarantined, engine.CaseHeld, reconcile.CaseStatement, store.CaseCredentials, webhook.CaseDisabled, webhook.CaseExhausted},
		"range.":   {"today", "yesterday", "week", "month", "last_month", "all", "days"},
		"subject.": list([]till.Noun{till.NounPayment, till.NounPayout, till.NounRefund}),
		"entry.":   {"collection", "late_collection", "collection_reversal", "fee", "payout", "late_payout", "refund", "late_refund", "adjustment"},
		"outcome.": {"accepted", "duplicate", "rejected", "open", "not_found", "unrecognised", "asked", "success", "failed", "expired", "reversed", "error", "in_flight"},
		"state.":   slices.Concat(list(till.Statuses), list(till.PayoutStatuses), []string{"sent", "open"}),
		"reason.": list([]till.FailureReason{till.CustomerDeclined, till.CustomerTimeout, till.NotApproved, till.InsufficientFunds, till.FundsOrLimit, till.PayerNotFound,
			till.PayerLimitReached, till.PayerNotAllowed, till.PayerBusy, till.WrongPIN, till.AmountOutOfBounds, till.RecipientNotFound, till.RecipientLimitReached,
			till.RecipientNotAllowed, till.ProviderUnavailable, till.ProviderRejected, till.ProviderError, till.Unspecified}),
		"refusal.":            list(people.RefusalCodes),
		"grant.":              {"recent", "test_only", "no_payout_keys", "by_keys"},
		"done.":               {"note", "refund", "checkout_cancelled", "link_on", "link_off", "link_title", "name_confirmed", "profile", "password", "totp", "totp_removed", "passkey", "passkey_removed", "sessions", "proved", "withdrawn", "role", "removed", "removed_made", "removed_kept", "disabled", "factor"},
		"message.":            list([]sandbox.MessageKind{sandbox.MessagePaid, sandbox.MessageReceived, sandbox.MessageReturned}),
		"people.":             {"remove_client", "remove_house", "remove_from_client", "remove_from_house", "ends_role_client", "ends_role_house"},
		"receipt.paper_":      {"58", "80", "a4"},
		"search.as_":          {"all", "id", "phone", "receipt", "text", "amount"},
		"home.range_":         {"today", "7d", "30d"},
		"home.chart_":         {"days", "days_sum", "hours", "hours_sum"},
		"home.open_":          {"phone", "asked", "unsent"},
		"letter.":             {"about_payment", "about_payout", "about_refund", "ours", "theirs", "amount", "phone", "sent"},
		"checkouts.life_":     {"hour", "day", "days", "week", "month"},
		"links.state_":        {"on", "off", "over"},
		"links.say_":          {"on", "open", "off", "over"},
		"links.paper_":        {"a6", "tent"},
		"links.how_":          {"1", "2", "3"},
		"checkouts.name_":     {"empty", "long", "letters", "taken"},
		"settings.pay_wrong_": {"empty", "long", "letters", "taken", "twin"},
		"home.page_":          {"abuse", "abuse_note", "reported", "reported_note"},
		"home.examine_":       {"payments", "payouts", "refunds", "note"},
		"house.trouble_":      list(books.TroubleNames()),
		"house.open_":         list([]till.SubjectKind{till.SubjectPayment, till.SubjectPayout}),
	}
	for _, r := range till.RefundReasons {
		f["refunds."] = append(f["refunds."], "reason_"+r)
	}
	for _, s := range []string{"open", "tried", "spent", "unsent", "live", "unsure", "examine", "paid", "late", "twice", "repaying", "once", "returned", "reversed", "expired", "cancelled"} {
		f["checkouts."] = append(f["checkouts."], "state_"+s, "say_"+s)
	}
	for _, s := range []string{"live", "unsure", "examine", "late", "twice", "repaying", "reversed", "spent", "tried"} {
		f["checkouts."] = append(f["checkouts."], "more_"+s)
	}
	for _, s := range []string{"open", "tried", "live", "unsure", "examine"} {
		f["checkouts."] = append(f["checkouts."], "next_"+s)
	}
	for _, b := range payout.Bars {
		f["refunds."] = append(f["refunds."], "bar_"+string(b))
	}
	for _, rules := range [][]people.Rule{people.StaffRules, people.HouseRules} {
		for _, r := range rules {
			f["permission."] = append(f["permission."], string(r.Permission))
		}
	}
	addHookFamilies(t, f)
	for _, s := range sandbox.Stories() {
		if s.Subject == string(till.SubjectPayment) && s.EndsIn != "0000" {
			f["story."], f["tells."] = append(f["story."], s.Name), append(f["tells."], s.Name)
		}
		if s.Subject == string(till.NounRefund) && s.EndsIn != "" {
			f["refundstory."] = append(f["refundstory."], s.Name)
		}
	}
	for _, k := range till.EventKinds {
		if subject, kind, _ := strings.Cut(string(k), "."); subject == "payment" || subject == "payout" || subject == "refund" {
			f["event."] = append(f["event."], subject+"_"+kind)
		}
	}
	for _, code := range []string{"missing", "insecure", "foreign", "away", "busy", "ours", "input", "long", "proof", "allowed", "refused", "phone", "suspended"} {
		f["error."] = append(f["error."], code+"_what", code+"_certain", code+"_do")
	}
	for _, kind := range []string{"payments", "payouts", "refunds"} {
		f["list."] = append(f["list."], kind, "party_"+kind, "never_"+kind)
		f["menu."], f["note."] = append(f["menu."], kind), append(f["note."], kind)
		f["whole."] = append(f["whole."], "go_"+kind)
		f["fact."] = append(f["fact."], "party_"+kind[:len(kind)-1], "id_"+kind[:len(kind)-1])
	}
	return f
}

func list[S ~string](all []S) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return out
}

// literal is a key as code and templates write it.
var literal = regexp.MustCompile(`"([a-z]+\.[a-z][a-z0-9_.]*)"`)

// fact is a key that facts() puts together.
var fact = regexp.MustCompile(`fact\("([a-z_]+)"`)

// Every key that code and templates name exists, and every key is named
// somewhere.
func TestNoKeyIsMissingAndNoneUnused(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for prefix, all := range families(t) {
		for _, word := range all {
			used[prefix+word] = true
		}
	}
	named := map[string]bool{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(p, "_test.go") || filepath.Ext(p) != ".go" && filepath.Ext(p) != ".html" {
			return err
		}
		text, err := os.ReadFile(filepath.Join("..", p))
		for _, m := range literal.FindAllSubmatch(text, -1) {
			named[string(m[1])] = true
		}
		for _, m := range fact.FindAllSubmatch(text, -1) {
			used["fact."+string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range words.Languages {
		c := words.For(lang)
		for key := range used {
			if !c.Has(key) && !strings.HasPrefix(key, "fact.party_") {
				t.Errorf("%s has no words for %s", lang, key)
			}
		}
		tables := map[string]bool{}
		for _, key := range c.Keys() {
			table, _, _ := strings.Cut(key, ".")
			tables[table] = true
			if !used[key] && !named[key] {
				t.Errorf("%s: nothing says %s", lang, key)
			}
		}
		for key := range named {
			if table, _, _ := strings.Cut(key, "."); tables[table] && !c.Has(key) && !strings.HasSuffix(key, "_") { // a beginning is of a family
				t.Errorf("%s has no words for %s, which is named", lang, key)
			}
		}
	}
}

func TestT(t *testing.T) {
	t.Parallel()
	en, fr := words.For("en"), words.For("fr")
	for _, c := range []struct{ got, want string }{
		{en.T("list.payments", "n", int64(1)), "1 payment"},
		{en.T("list.payments", "n", int64(0)), "0 payments"},
		{fr.T("list.payments", "n", int64(0)), "0 paiement"},
		{fr.T("list.payments", "n", 1234), "1\u202f234 paiements"},
		{en.T("why.failed", "reason", "{op}", "op", "MTN"), "{op}. MTN says that no money moved."},
		{en.T("not.there"), "not.there"},
		{words.For("xx").Lang(), "en"},
		{en.T("frame.skip"), "Skip to content"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
