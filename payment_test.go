package till_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"till"
)

var update = flag.Bool("update", false, "rewrite docs/state_machine.md")

// Every from by every to. A new status breaks this until somebody decides.
func TestCanBecome(t *testing.T) {
	t.Parallel()
	want := map[till.Status]string{ // columns in the order of Statuses; x moves, = is no change, F is final, . is no such move
		till.Pending:    "=xxxx",
		till.Processing: ".=xxx",
		till.Success:    "FF=FF",
		till.Failed:     "FFF=F",
		till.Expired:    "FFFF=",
	}
	if len(want) != len(till.Statuses) {
		t.Fatalf("%d statuses, and the matrix has %d rows", len(till.Statuses), len(want))
	}
	for _, from := range till.Statuses {
		var got strings.Builder
		for _, to := range till.Statuses {
			switch err := from.CanBecome(to); {
			case err == nil:
				got.WriteByte('x')
			case errors.Is(err, till.ErrSameStatus):
				got.WriteByte('=')
			case errors.Is(err, till.ErrFinal):
				got.WriteByte('F')
			case errors.Is(err, till.ErrIllegalTransition):
				got.WriteByte('.')
			default:
				t.Errorf("from %s to %s: %v", from, to, err)
			}
		}
		if got.String() != want[from] {
			t.Errorf("from %s: got %s, want %s", from, got.String(), want[from])
		}
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, s := range till.Statuses {
		if !s.Valid() {
			t.Errorf("%s is listed and not valid", s)
		}
		if final := len(till.Transitions[s]) == 0; s.Final() != final {
			t.Errorf("%s: final is %v, and the table of moves says %v", s, s.Final(), final)
		}
	}
	for _, s := range []till.Status{"", "PENDING", "refunded", "late"} {
		if s.Valid() || s.Final() || till.Pending.CanBecome(s) == nil || s.CanBecome(till.Success) == nil {
			t.Errorf("%q passes for a status", s)
		}
	}
	for from, to := range till.Transitions {
		for _, s := range append(to, from) {
			if !slices.Contains(till.Statuses, s) {
				t.Errorf("the table of moves has %q, which is no status", s)
			}
		}
	}
}

func TestNewResolutionState(t *testing.T) {
	t.Parallel()
	for _, s := range till.Statuses {
		for _, attention := range []bool{false, true} {
			for _, unclear := range []bool{false, true} {
				want := till.Waiting // the customer's time is running
				switch {
				case attention:
					want = till.NeedsAttention
				case s == till.Success || s == till.Failed || s == till.Expired:
					want = till.Confirmed
				case unclear:
					want = till.Querying
				}
				if got := till.NewResolutionState(s.Final(), attention, unclear); got != want {
					t.Errorf("%s, attention %v, unclear %v: got %s, want %s", s, attention, unclear, got, want)
				}
			}
		}
	}
}

// newPayment returns a payment with something in every field.
func newPayment() *till.Payment {
	at := till.Time(1_760_000_000_123_456)
	return &till.Payment{
		ClientID: till.NewID(at), ID: till.NewID(at), IdempotencyKey: "0198C0DE-0000-7000-8000-00000000ABCD",
		Status: till.Failed, PreviousStatus: till.Processing,
		Method: "mtn_momo", Country: "CG", Amount: till.Money{Minor: 5000, Currency: "XAF"}, Fee: 75, Phone: "242061234567", Reference: "order-1",
		Document:          []byte(`"description":"Two bags","customer":{"phone":"242061234567","name":null,"email":null},"charge":null,"tax":null,"metadata":{"a":[1,2.50,{"b":null}]}`),
		ProviderReference: "R1", FailureReason: till.WrongPIN, FailureDetail: &till.FailureDetail{ProviderCode: "BAD_PIN", ProviderMessage: "Wrong.", Retryable: true},
		CreatedAt: at, UpdatedAt: at.Add(time.Second), ExpiresAt: at.Add(time.Hour), ApprovalWindow: time.Minute,
		LateSuccessAt: at.Add(2 * time.Second), ReversedAt: at.Add(3 * time.Second),
		Connection: "mtn", Fingerprint: "f",
		Resolution: till.Resolution{State: till.Confirmed, LastCheckedAt: at.Add(time.Second), NextCheckAt: at.Add(24 * time.Hour), Attempts: 3},
	}
}

func TestAsCreated(t *testing.T) {
	t.Parallel()
	p := newPayment()
	before := *p
	got := p.AsCreated()
	want := before
	want.Status, want.PreviousStatus = till.Pending, ""
	want.ProviderReference, want.FailureReason, want.FailureDetail = "", "", nil
	want.UpdatedAt, want.ExpiresAt = want.CreatedAt, want.CreatedAt.Add(60*time.Second)
	want.LateSuccessAt, want.ReversedAt = 0, 0
	want.Resolution = till.Resolution{State: till.Waiting}
	if d := cmp.Diff(*got, want); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
	if d := cmp.Diff(*p, before); d != "" {
		t.Errorf("the payment itself changed (-got +want)\n%s", d)
	}
	if p.ExpiresAt = p.CreatedAt.Add(-23 * time.Hour); p.AsCreated().ExpiresAt != p.ExpiresAt {
		t.Errorf("made while its client's time was ahead, it ends at %s; want %s", p.AsCreated().ExpiresAt, p.ExpiresAt)
	}
}

func parse(t rapid.TB, p *till.Payment) map[string]any {
	t.Helper()
	b := p.AppendJSON(nil)
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return m
}

func TestAppendJSON(t *testing.T) {
	t.Parallel()
	members := []string{"amount", "charge", "country", "created_at", "customer", "description", "expires_at", "failure_detail", "failure_reason", "fee", "id",
		"idempotency_key", "late_success_at", "metadata", "method", "net", "provider_reference", "reference", "resolution", "reversed_at", "status", "tax", "updated_at"}

	t.Run("every member is there, with its value", func(t *testing.T) {
		t.Parallel()
		p := newPayment()
		got := parse(t, p)
		want := map[string]any{
			"id": p.ID.String(), "status": "failed", "method": "mtn_momo", "country": "CG",
			"amount": map[string]any{"value": "5000", "currency": "XAF"}, "fee": "75", "net": "4925", "reference": "order-1",
			"idempotency_key": "0198C0DE-0000-7000-8000-00000000ABCD", "provider_reference": "R1", "failure_reason": "wrong_pin",
			"failure_detail": map[string]any{"provider_code": "BAD_PIN", "provider_message": "Wrong.", "retryable": false}, // as it was paid after all
			"description":    "Two bags", "customer": map[string]any{"phone": "242061234567", "name": nil, "email": nil},
			"charge": nil, "tax": nil, "metadata": map[string]any{"a": []any{1.0, 2.5, map[string]any{"b": nil}}},
			"created_at": "2025-10-09T08:53:20.123456Z", "updated_at": "2025-10-09T08:53:21.123456Z", "expires_at": "2025-10-09T09:53:20.123456Z",
			"late_success_at": "2025-10-09T08:53:22.123456Z", "reversed_at": "2025-10-09T08:53:23.123456Z",
			"resolution": map[string]any{"state": "confirmed", "last_checked_at": "2025-10-09T08:53:21.123456Z", "next_check_at": "2025-10-10T08:53:20.123456Z", "attempts": 3.0},
		}
		if d := cmp.Diff(got, want); d != "" {
			t.Errorf("(-got +want)\n%s", d)
		}
	})
	t.Run("every member is there where there is nothing, as null", func(t *testing.T) {
		t.Parallel()
		p := newPayment().AsCreated()
		p.Country, p.Reference = "", ""
		got := parse(t, p)
		for _, m := range []string{"country", "reference", "provider_reference", "failure_reason", "failure_detail", "late_success_at", "reversed_at"} {
			if v, ok := got[m]; !ok || v != nil {
				t.Errorf("%s is %v, want null", m, v)
			}
		}
		want := map[string]any{"state": "waiting", "last_checked_at": nil, "next_check_at": nil, "attempts": 0.0}
		if d := cmp.Diff(got["resolution"], any(want)); d != "" {
			t.Errorf("resolution (-got +want)\n%s", d)
		}
		if d := cmp.Diff(slices.Sorted(keys(got)), members); d != "" {
			t.Errorf("members (-got +want)\n%s", d)
		}
	})
	t.Run("any text comes back as it was", func(t *testing.T) {
		t.Parallel()
		texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\"", "\\", "\x00", "\x1f\x7f", "a\nb\r\tc", "\u2028<script>&", "💶 ٣", "\\u0041"}))
		rapid.Check(t, func(t *rapid.T) {
			p := newPayment()
			p.Reference = texts.Draw(t, "reference")
			p.ProviderReference = texts.Draw(t, "receipt")
			p.FailureDetail.ProviderMessage = texts.Draw(t, "message")
			got := parse(t, p)
			detail := got["failure_detail"].(map[string]any)
			for _, c := range []struct {
				got  any
				want string
			}{{got["reference"], p.Reference}, {got["provider_reference"], p.ProviderReference}, {detail["provider_message"], p.FailureDetail.ProviderMessage}} {
				if c.want == "" && c.got == nil {
					continue
				}
				if c.got != c.want {
					t.Errorf("got %q, want %q", c.got, c.want)
				}
			}
		})
	})
	t.Run("control characters are escaped", func(t *testing.T) {
		t.Parallel()
		p := newPayment()
		for c := range byte(0x20) {
			p.Reference += string(rune(c))
		}
		for i, c := range p.AppendJSON(nil) {
			if c < ' ' {
				t.Fatalf("byte %d is %#x", i, c)
			}
		}
		if got := parse(t, p)["reference"]; got != p.Reference {
			t.Errorf("got %q", got)
		}
	})
	t.Run("it appends", func(t *testing.T) {
		t.Parallel()
		if b := newPayment().AppendJSON([]byte("before")); !strings.HasPrefix(string(b), `before{"id":"`) {
			t.Errorf("got %.20q", b)
		}
	})
}

func keys(m map[string]any) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// The document is written from the tables, so it cannot lie.
func TestStateMachineDocument(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# The states of a payment\n\n" +
		"Written by a test from the table `till.Transitions` in `payment.go`; `go test . -update` rewrites it.\n\n")
	chart(&b, till.Statuses, till.Transitions)
	b.WriteString("\nEvery move makes one event, of the kind `payment.` and the new status. Money that comes after `failed` or\n" +
		"`expired` moves nothing: the status stays, the money is credited as a `late_collection`, and the event is\n" +
		"`" + string(till.PaymentLateSuccess) + "`.\n")
	b.WriteString("\n# The states of a payout\n\nWritten from the table `till.PayoutTransitions` in `payout.go`.\n\n")
	chart(&b, till.PayoutStatuses, till.PayoutTransitions)
	b.WriteString("\nEvery move makes one event, of the kind `payout.` and the new status. The money is reserved while the status is not\n" +
		"final. A payout that was paid after `failed` or `cancelled` moves nothing: the status stays, the money is debited as a\n" +
		"`late_payout`, and the event is `" + string(till.PayoutEventLateSuccess) + "`.\n\n" +
		"A refund is a payout that names the payment it gives back, and has the same states. Its events are `refund.` and the\n" +
		"new status, and late ones `" + string(till.RefundLateSuccess) + "`; its money is posted as `refund`, or as `late_refund`.\n")

	path := filepath.Join("docs", "state_machine.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(got), b.String()); d != "" {
		t.Errorf("%s differs; run go test . -update (-got +want)\n%s", path, d)
	}
}

// status is a status of a payment or of a payout.
type status[S any] interface {
	~string
	Final() bool
	CanBecome(next S) error
}

// chart draws a state machine, and lists every pair.
func chart[S status[S]](b *strings.Builder, statuses []S, moves map[S][]S) {
	b.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> pending\n")
	for _, from := range statuses {
		for _, to := range moves[from] {
			fmt.Fprintf(b, "    %s --> %s\n", from, to)
		}
	}
	for _, s := range statuses {
		if s.Final() {
			fmt.Fprintf(b, "    %s --> [*]\n", s)
		}
	}
	b.WriteString("```\n\nFrom the row to the column:\n\n|  |")
	for _, to := range statuses {
		fmt.Fprintf(b, " `%s` |", to)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(statuses)) + "\n")
	for _, from := range statuses {
		fmt.Fprintf(b, "| `%s` |", from)
		for _, to := range statuses {
			switch err := from.CanBecome(to); {
			case err == nil:
				b.WriteString(" moves |")
			case errors.Is(err, till.ErrSameStatus):
				b.WriteString(" no change |")
			case errors.Is(err, till.ErrFinal):
				b.WriteString(" never: final |")
			default:
				b.WriteString(" no such move |")
			}
		}
		b.WriteString("\n")
	}
}
