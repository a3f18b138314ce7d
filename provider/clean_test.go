package provider_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"till"
	"till/provider"
)

// storable is what both databases keep as it is.
func storable(s string, n int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= n && !strings.ContainsFunc(s, unicode.IsControl)
}

func TestWhatIsCleanStaysAsItIs(t *testing.T) {
	r := provider.Result{
		Outcome: provider.Success, Receipt: `MP/12-é "x" \x00`, Handle: "ws_CO_1", Reference: "r", Code: "OK", Message: "Merci à vous",
		Amount: till.Money{Minor: 5, Currency: "ZZZ"}, Reason: till.Unspecified,
	}
	if got, changed := r.Clean(); got != r || changed != nil {
		t.Errorf("%+v, changed %q", got, changed)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "R1", "\x00", "a\x00b", "\xff", "\ufffd", "é\n", strings.Repeat("é", 300), strings.Repeat("\x00", 300), "\u0085", "\"a\\x00b\""} {
		f.Add(s, "other")
	}
	f.Fuzz(func(t *testing.T, s, other string) {
		r := provider.Result{Outcome: provider.Failed, Receipt: s, Handle: s, Reference: s, Code: s, Message: s, Reason: till.FailureReason(s), Amount: till.Money{Currency: s}}
		got, _ := r.Clean()
		for name, text := range map[string]string{"receipt": got.Receipt, "handle": got.Handle, "reference": got.Reference, "code": got.Code,
			"message": got.Message, "reason": string(got.Reason), "currency": got.Amount.Currency} {
			if !storable(text, 300) {
				t.Errorf("the %s is %q", name, text)
			}
		}
		if got.Handle != "" && got.Handle != s {
			t.Errorf("the handle %q of %q is not the operator's", got.Handle, s)
		}
		if (got.Receipt == "") != (s == "") || (got.Amount.Currency == "") != (s == "") {
			t.Errorf("of %q nothing is left: %+v", s, got)
		}
		if utf8.RuneCountInString(got.Receipt) > provider.MaxReceipt || len(got.Handle) > provider.MaxHandle {
			t.Errorf("too long: %+v", got)
		}
		if again, changed := got.Clean(); again != got {
			t.Errorf("cleaned twice it is another: %q", changed)
		}
		o := provider.Result{Receipt: other}
		if o, _ := o.Clean(); s != other && o.Receipt == got.Receipt && storable(s, provider.MaxReceipt) == storable(other, provider.MaxReceipt) {
			t.Errorf("%q and %q are both kept as %q", s, other, o.Receipt)
		}
	})
}
