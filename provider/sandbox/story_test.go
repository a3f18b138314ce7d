package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/provider"
)

// timeline tells a request's whole life: what the operator says and from when,
// counted from the arrival.
func timeline(r *request) string {
	var said []string
	last := ""
	for _, edge := range []time.Duration{0, earlyCallbackDelay, decisionTime, decisionTime + lateMoneyDelay, decisionTime + reversalDelay, 10 * time.Second,
		defaultWindow, defaultWindow + lateMoneyDelay, 1000 * time.Hour} {
		// A microsecond before each edge shows that nothing happens early.
		for _, d := range []time.Duration{edge - time.Microsecond, edge} {
			result := r.resultAt(r.arrivedAt.Add(d))
			now := strings.TrimSpace(string(result.Outcome) + " " + string(result.Reason))
			if now != last {
				said = append(said, fmt.Sprintf("%v %s", max(d, 0), now))
			}
			last = now
		}
	}
	return strings.Join(said, ", ")
}

// callbackLine tells what is called back.
func callbackLine(r *request) string {
	c := r.callback()
	if c.at.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%v %d x %s", c.at.Sub(r.arrivedAt), c.copies, c.claims)
}

// debitLine tells what moves.
func debitLine(r *request) string {
	at := r.movedAt()
	if at.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%v %s %s", at.Sub(r.arrivedAt), r.movedAmount().Value(), r.movedAmount().Currency)
}

// Who decides in a story.
const (
	byItself = iota
	approve
	decline
)

// lives is every story, told in full.
var lives = []struct {
	name     string
	digits   string
	person   int // decides after ten seconds
	life     string
	callback string
	debit    string
}{
	{"the customer approves", "4567", byItself,
		"0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
	{"0001 is any other", "0001", byItself,
		"0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
	{"nobody decides", "0000", byItself,
		"0s open, 1m0s expired customer_timeout", "1m0s 1 x expired", "none"},
	{"a person approves", "0000", approve,
		"0s open, 10s success", "10s 1 x success", "10s 500 XAF"},
	{"a person declines", "0000", decline,
		"0s open, 10s failed customer_declined", "10s 1 x failed", "none"},
	{"the customer declines", "0002", byItself,
		"0s open, 1s failed customer_declined", "1s 1 x failed", "none"},
	{"the customer never answers", "0003", byItself,
		"0s open, 1m0s expired customer_timeout", "1m0s 1 x expired", "none"},
	{"no funds", "0004", byItself,
		"0s open, 1s failed insufficient_funds", "1s 1 x failed", "none"},
	{"the payer's limit", "0006", byItself,
		"0s open, 1s failed payer_limit_reached", "1s 1 x failed", "none"},
	{"a wrong PIN", "0007", byItself,
		"0s open, 1s failed wrong_pin", "1s 1 x failed", "none"},
	{"the answer is lost", "0011", byItself,
		"0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
	{"the first request is lost", "0012", byItself,
		"0s open, 1s success", "1s 1 x success", "1s 500 XAF"},
	{"late money", "0013", byItself,
		"0s open, 1m0s expired customer_timeout, 1m2s success", "none", "1m2s 500 XAF"},
	{"stuck", "0014", byItself,
		"0s open", "none", "none"},
	{"five callbacks", "0015", byItself,
		"0s open, 1s success", "1s 5 x success", "1s 500 XAF"},
	{"the callback comes first", "0016", byItself,
		"0s open, 50ms success", "50ms 1 x success", "50ms 500 XAF"},
	{"no callback", "0017", byItself,
		"0s open, 1s success", "none", "1s 500 XAF"},
	{"the callback lies", "0018", byItself,
		"0s open, 1s failed customer_declined", "1s 1 x success", "none"},
	{"another amount", "0019", byItself,
		"0s open, 1s success", "1s 1 x success", "1s 1000 XAF"},
	{"taken back", "0021", byItself,
		"0s open, 1s success, 4s reversed", "4s 1 x reversed", "1s 500 XAF"},
}

func TestEveryStoryIsAFunctionOfStoredTimes(t *testing.T) {
	t.Parallel()
	for _, c := range lives {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			arrived := newClock().Now()
			r := &request{
				phone:       "24206123" + c.digits,
				amount:      till.Money{Minor: 500, Currency: "XAF"},
				arrivedAt:   arrived,
				expiresAt:   arrived.Add(defaultWindow),
				callbackURL: "http://till.example/callbacks",
			}
			if c.person != byItself {
				r.decidedAt, r.approved = arrived.Add(10*time.Second), c.person == approve
			}
			got := []string{timeline(r), callbackLine(r), debitLine(r)}
			if diff := cmp.Diff([]string{c.life, c.callback, c.debit}, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			r.callbackURL = ""
			if got := callbackLine(r); got != "none" {
				t.Errorf("without an address the callback is %q", got)
			}
		})
	}
}

func TestOnlySuccessHasAReceipt(t *testing.T) {
	t.Parallel()
	clock := newClock()
	r := &request{id: 7, reference: till.NewID(clock.Now()), phone: "242061234567", arrivedAt: clock.Now()}
	if got := r.resultAt(r.arrivedAt).Receipt; got != "" {
		t.Errorf("an open request has the receipt %q", got)
	}
	got := r.resultAt(r.arrivedAt.Add(decisionTime))
	if !strings.HasPrefix(got.Receipt, "SBX") || got.Outcome != provider.Success {
		t.Errorf("a %s has the receipt %q", got.Outcome, got.Receipt)
	}
	twin := *r
	twin.id++
	if again := twin.receipt(); again == got.Receipt {
		t.Errorf("a second request of the reference has the same receipt %q", again)
	}
}

func TestAShortPhoneIsAnyOther(t *testing.T) {
	t.Parallel()
	for _, phone := range []string{"", "014", "+24206", "242061230001"} {
		if got := storyOf(payment, phone); got != approves {
			t.Errorf("%q has the story %q", phone, got)
		}
	}
}
