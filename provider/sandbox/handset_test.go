package sandbox

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/provider"
)

// handsetWorld is an operator with one handset, whose number would decline by
// its story.
type handsetWorld struct {
	t      *testing.T
	clock  *clock
	o      *Operator
	client till.ID
	phone  string
}

func newHandsetWorld(t *testing.T, e engine) *handsetWorld {
	clock := newClock()
	return &handsetWorld{t, clock, newOperator(t, e, clock, Config{}), till.NewID(clock.Now()), "242061230002"}
}

func (w *handsetWorld) hold(state HandsetState) {
	w.t.Helper()
	if err := w.o.HoldHandset(w.t.Context(), w.client, w.phone, state); err != nil {
		w.t.Fatal(err)
	}
}

func (w *handsetWorld) ask(minor int64) provider.Request {
	w.t.Helper()
	w.clock.Advance(time.Second)
	r := newPayment(w.clock, "0002")
	r.Client, r.Phone, r.Amount.Minor = w.client, w.phone, minor
	submit(w.t, w.o, r, provider.Accepted)
	return r
}

func (w *handsetWorld) handset() *Handset {
	w.t.Helper()
	h, err := w.o.Handset(w.t.Context(), w.client, w.phone, "XAF")
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

func (w *handsetWorld) typePIN(r provider.Request, pin string, want Decision, wantLeft int) {
	w.t.Helper()
	got, left, err := w.o.TypePIN(w.t.Context(), w.client, r.ID, pin)
	if err != nil || got != want || left != wantLeft {
		w.t.Errorf("PIN %s: decided %q, %d left, %v; want %q, %d", pin, got, left, err, want, wantLeft)
	}
}

func TestAHandsetAsksForThePIN(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		w := newHandsetWorld(t, e)
		w.hold(HandsetOn)
		paid, refused, tooMuch := w.ask(1500), w.ask(200), w.ask(60_000)
		if h := w.handset(); len(h.Prompts) != 3 || h.Prompts[0].Payment != paid.ID || h.Balance.Minor != openingBalance || len(h.Messages) != 0 {
			t.Fatalf("the handset shows %+v", h)
		}
		w.typePIN(paid, PIN, Approve, 0)
		check(t, w.o, paid, provider.Success)
		w.typePIN(refused, "0000", "", 2)
		w.typePIN(refused, "", "", 1)
		check(t, w.o, refused, provider.Open)
		w.typePIN(refused, "99999", WrongPIN, 0)
		if got := check(t, w.o, refused, provider.Failed); got.Reason != till.WrongPIN {
			t.Errorf("three wrong PINs end with %q", got.Reason)
		}
		w.typePIN(tooMuch, PIN, NoFunds, 0)
		if got := check(t, w.o, tooMuch, provider.Failed); got.Reason != till.InsufficientFunds {
			t.Errorf("too little money ends with %q", got.Reason)
		}
		for _, r := range []provider.Request{paid, refused, tooMuch} {
			if _, _, err := w.o.TypePIN(t.Context(), w.client, r.ID, PIN); till.ErrorCode(err) != till.CodePromptNotFound {
				t.Errorf("a prompt that is answered: %v", err)
			}
		}
		h := w.handset()
		want := []Message{{MessagePaid, paid.ID, till.Money{Minor: 1500, Currency: "XAF"}, till.Money{Minor: 48_500, Currency: "XAF"}, w.clock.Now(), h.Messages[0].Receipt}}
		if diff := cmp.Diff(want, h.Messages); diff != "" || len(h.Prompts) != 0 || h.Balance.Minor != 48_500 || h.Messages[0].Receipt == "" {
			t.Errorf("the handset shows %+v\n%s", h, diff)
		}
		if _, _, err := w.o.TypePIN(t.Context(), till.NewID(w.clock.Now()), paid.ID, PIN); till.ErrorCode(err) != till.CodePromptNotFound {
			t.Errorf("another client's prompt: %v", err)
		}
	})
}

func TestAHandsetHoldsItsNumberWhileItIsSeen(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		w := newHandsetWorld(t, e)
		before := w.ask(100)
		w.hold(HandsetNoNetwork)
		held := w.ask(100)
		other := newPayment(w.clock, "0002") // another client's customer with the same number
		other.Phone = w.phone
		submit(t, w.o, other, provider.Accepted)
		w.clock.Advance(HoldTime)
		after := w.ask(100)
		w.clock.Advance(decisionTime)
		check(t, w.o, before, provider.Failed)
		check(t, w.o, other, provider.Failed)
		check(t, w.o, after, provider.Failed)
		check(t, w.o, held, provider.Open)
		if h := w.handset(); len(h.Prompts) != 1 || h.Prompts[0].Payment != held.ID || h.State != HandsetNoNetwork {
			t.Errorf("the handset shows %+v", h)
		}
		w.clock.Advance(time.Minute)
		if got := check(t, w.o, held, provider.Expired); got.Reason != till.CustomerTimeout {
			t.Errorf("what nobody answered ends with %q", got.Reason)
		}
		if _, _, err := w.o.TypePIN(t.Context(), w.client, held.ID, PIN); till.ErrorCode(err) != till.CodePromptNotFound {
			t.Errorf("a PIN after the time is over: %v", err)
		}
	})
}

func TestAHandsetGetsPayoutsRefundsAndWhatIsTakenBack(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		w := newHandsetWorld(t, e)
		w.phone = "242061230021"
		w.hold(HandsetOn)
		for _, payment := range []till.ID{{}, till.NewID(w.clock.Now())} {
			out := newPayment(w.clock, "0021")
			out.Client, out.Phone, out.Amount.Minor, out.PaymentID = w.client, w.phone, 350, payment
			if _, err := w.o.Payouts().Submit(t.Context(), out); err != nil {
				t.Fatal(err)
			}
		}
		w.clock.Advance(2 * HoldTime)
		w.ask(300) // nobody holds the number: it is approved, and taken back
		w.clock.Advance(time.Minute)
		h := w.handset()
		var kinds []MessageKind
		for _, m := range h.Messages {
			kinds = append(kinds, m.Kind)
		}
		if diff := cmp.Diff([]MessageKind{MessageReturned, MessagePaid, MessageReceived, MessageReceived}, kinds); diff != "" || h.Balance.Minor != 50_700 {
			t.Errorf("balance %d, messages %v", h.Balance.Minor, kinds)
		}
		w.clock.Advance(2 * putAway)
		w.hold(HandsetOn)
		if h := w.handset(); h.Balance.Minor != openingBalance || len(h.Messages) != 0 {
			t.Errorf("a handset that was put away has %+v", h)
		}
	})
}

func TestAClientHasSoManyHandsets(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		w := newHandsetWorld(t, e)
		first := w.phone
		w.hold(HandsetOn)
		for i := range MaxHandsets {
			w.clock.Advance(time.Millisecond)
			w.phone = "24206124" + string(rune('0'+i/10)) + string(rune('0'+i%10)) + "00"
			w.hold(HandsetOn)
		}
		for phone, want := range map[string]bool{first: false, w.phone: true} {
			if held, err := w.o.book.isHeld(t.Context(), w.client, phone, w.clock.Now()); err != nil || held != want {
				t.Errorf("%s is held: %v, %v", phone, held, err)
			}
		}
	})
}

// TestABookOfAnOlderReleaseGainsHandsets opens a book without the later
// columns, with a prompt in it that a person answers.
func TestABookOfAnOlderReleaseGainsHandsets(t *testing.T) {
	clock := newClock()
	path := filepath.Join(t.TempDir(), "sandbox.db")
	o := newOperator(t, engine{}, clock, Config{Path: path})
	r := newPayment(clock, "0000")
	submit(t, o, r, provider.Accepted)
	for _, statement := range []string{
		`DROP TABLE handsets`, `DROP INDEX requests_open_prompt`, `DROP INDEX requests_phone`,
		`ALTER TABLE requests DROP COLUMN asked`, `ALTER TABLE requests DROP COLUMN decision`, `ALTER TABLE requests DROP COLUMN wrong_pins`,
	} {
		if _, err := o.book.writer.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	again := newOperator(t, engine{}, clock, Config{Path: path})
	if _, _, err := again.TypePIN(t.Context(), r.Client, r.ID, PIN); err != nil {
		t.Fatal(err)
	}
	check(t, again, r, provider.Success)
}
