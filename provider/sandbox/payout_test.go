package sandbox

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/provider"
	"till/provider/providertest"
)

// credits counts the credits of a reference.
func credits(t testing.TB, o *Operator, reference till.ID) (n int) {
	t.Helper()
	all, err := o.Credits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Reference == reference {
			n++
		}
	}
	return n
}

func TestPayoutProvider(t *testing.T) { runPayouts(t, false) }

func TestRefundProvider(t *testing.T) { runPayouts(t, true) }

// runPayouts runs the suite for payouts, or for refunds that name their payments.
func runPayouts(t *testing.T, refunds bool) {
	t.Helper()
	digits := map[providertest.Story]string{
		providertest.Approve: "4567", providertest.UnknownPayer: "0005", providertest.LimitReached: "0006",
		providertest.LostAnswer: "0011", providertest.LostRequest: "0012", providertest.Stuck: "0014",
	}
	if refunds {
		digits = map[providertest.Story]string{
			providertest.Approve: "4567", providertest.LimitReached: "0031", providertest.LostAnswer: "0034", providertest.Stuck: "0032",
		}
	}
	onEngines(t, func(t *testing.T, e engine) {
		providertest.Run(t, func(t *testing.T) providertest.Harness {
			clock := newClock()
			o := newOperator(t, e, clock, Config{})
			return providertest.Harness{
				Provider: o.Payouts(), Payout: true,
				Request: func(s providertest.Story) (provider.Request, bool) {
					d, ok := digits[s]
					r := newPayment(clock, d)
					if refunds {
						r.PaymentID = till.NewID(clock.Now())
						r.Refund = &provider.Original{Reference: providertest.NewReference(), Phone: r.Phone, Amount: r.Amount}
					}
					return r, ok
				},
				Advance: clock.Advance,
				Debits:  func(reference till.ID) int { return credits(t, o, reference) },
			}
		})
	})
}

// A payment on one of these numbers succeeds, and its refund has a story.
func TestEveryStoryOfARefund(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ digits, life, callback, credit string }{
		{"4567", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
		{"0005", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
		{"0031", "0s open, 1s failed recipient_limit_reached", "1s 1 x failed", "none"},
		{"0032", "0s open", "none", "none"},
		{"0033", "0s open, 1s failed provider_error, 3s success", "none", "3s 500 XAF"},
		{"0034", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
		{"0035", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
		{"0036", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
	} {
		arrived := newClock().Now()
		r := &request{
			kind: refund, phone: "24206123" + c.digits, amount: till.Money{Minor: 500, Currency: "XAF"},
			arrivedAt: arrived, expiresAt: arrived.Add(defaultWindow), callbackURL: "http://till.example/callbacks",
		}
		got := []string{timeline(r), callbackLine(r), debitLine(r)}
		if diff := cmp.Diff([]string{c.life, c.callback, c.credit}, got); diff != "" {
			t.Errorf("%s: want -, got +:\n%s", c.digits, diff)
		}
		for _, k := range []kind{payment, payout} {
			if c.digits > "0030" && c.digits < "0037" && storyOf(k, r.phone) != approves {
				t.Errorf("%s has a story of a %s", c.digits, k)
			}
		}
	}
	for digits, want := range map[string]time.Duration{"0035": heldBackDelay, "0020": 0, "4567": 0} {
		if got := (Payouts{}).SendDelay(provider.Request{Phone: "24206123" + digits, PaymentID: till.ID{1}}); got != want {
			t.Errorf("%s is delayed by %s", digits, got)
		}
	}
}

// All of a payment, or a part, by the operator's own call; but not for numbers without one.
func TestCanRefund(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		digits string
		minor  int64
		want   bool
	}{{"4567", 500, true}, {"4567", 1, true}, {"4567", 501, false}, {"4567", 0, false}, {"0035", 500, true}, {"0036", 500, false}} {
		o := provider.Original{Phone: "24206123" + c.digits, Amount: till.Money{Minor: 500, Currency: "XAF"}}
		if got := (Payouts{}).CanRefund(o, till.Money{Minor: c.minor, Currency: "XAF"}); got != c.want {
			t.Errorf("%d of %s: %v", c.minor, c.digits, got)
		}
	}
}

func TestEveryStoryOfAPayout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, digits, life, callback, credit string }{
		{"it is paid", "4567", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
		{"nobody has to decide", "0000", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
		{"a recipient does not decline", "0002", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
		{"the recipient's limit", "0006", "0s open, 1s failed recipient_limit_reached", "1s 1 x failed", "none"},
		{"the answer is lost", "0011", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
		{"the first request is lost", "0012", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
		{"paid after it failed", "0013", "0s open, 1s failed provider_error, 3s success", "none", "3s 500 XAF"},
		{"stuck", "0014", "0s open", "none", "none"},
		{"five callbacks", "0015", "0s open, 1s success", "1s 5 x success", "1s 500 XAF"},
		{"no callback", "0017", "0s open, 1s success", "none", "1s 500 XAF"},
		{"the amount is right", "0019", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
		{"held back before it is sent", "0020", "0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			arrived := newClock().Now()
			r := &request{
				kind: payout, phone: "24206123" + c.digits, amount: till.Money{Minor: 500, Currency: "XAF"},
				arrivedAt: arrived, expiresAt: arrived.Add(defaultWindow), callbackURL: "http://till.example/callbacks",
			}
			got := []string{timeline(r), callbackLine(r), debitLine(r)}
			if diff := cmp.Diff([]string{c.life, c.callback, c.credit}, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestPaymentsAndPayoutsDoNotMix(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock := newClock()
		o := newOperator(t, e, clock, Config{})
		in, out, person := newPayment(clock, "4567"), newPayment(clock, "4567"), newPayment(clock, "0000")
		if _, err := o.Submit(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		for _, r := range []provider.Request{out, person} {
			if got, err := o.Payouts().Submit(t.Context(), r); err != nil || got.Outcome != provider.Accepted {
				t.Fatal(got, err)
			}
		}
		// Nobody is asked whether to be paid.
		if prompts, err := o.Prompts(t.Context(), person.Client, 10); err != nil || len(prompts) != 0 {
			t.Errorf("the prompts are %v, %v", prompts, err)
		}
		clock.Advance(time.Second)
		if debits(t, o, in.Reference) != 1 || credits(t, o, in.Reference) != 0 || debits(t, o, out.Reference) != 0 || credits(t, o, out.Reference) != 1 {
			t.Error("a payment is one debit, a payout one credit")
		}
		got, err := o.Payouts().Submit(t.Context(), newPayment(clock, "0005"))
		if err != nil || got.Outcome != provider.Rejected || got.Reason != till.RecipientNotFound {
			t.Errorf("an unknown recipient: %+v, %v", got, err)
		}
	})
}

func TestOnlyOneEndingIsHeldBack(t *testing.T) {
	t.Parallel()
	p := Payouts{}
	if got := p.SendDelay(provider.Request{Phone: "242061230020"}); got != 5*time.Second {
		t.Errorf("0020 is held for %s", got)
	}
	if got := p.SendDelay(provider.Request{Phone: "242061234567"}); got != 0 {
		t.Errorf("another is held for %s", got)
	}
}

// A book that an older release has left is gone on with.
func TestAnOldBookLearnsOfPayouts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sandbox.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	old := till.NewID(1)
	if _, err := db.Exec(schema); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`INSERT INTO requests (reference, copy, client, payment, phone, minor, currency, arrived_at, expires_at, callback_url, callback_due, callback_tries)
		VALUES (?, 0, x'00', x'00', '242061234567', 500, 'XAF', 1, 2, '', 0, 0)`, old[:]); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for range 2 {
		o, err := Open(t.Context(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := o.Check(t.Context(), provider.Query{Reference: old}); err != nil || got.Outcome != provider.Success || !strings.HasPrefix(got.Receipt, "SBX") {
			t.Errorf("the old request: %+v, %v", got, err)
		}
		if debits(t, o, old) != 1 {
			t.Error("the old request is no debit")
		}
		o.Close()
	}
}
