package till_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
)

// Every from by every to. A new status breaks this until somebody decides.
func TestPayoutCanBecome(t *testing.T) {
	t.Parallel()
	want := map[till.PayoutStatus]string{ // as in TestCanBecome
		till.PayoutPending:    "=xxxx",
		till.PayoutProcessing: ".=xx.",
		till.PayoutSuccess:    "FF=FF",
		till.PayoutFailed:     "FFF=F",
		till.PayoutCancelled:  "FFFF=",
	}
	if len(want) != len(till.PayoutStatuses) {
		t.Fatalf("%d statuses, and the matrix has %d rows", len(till.PayoutStatuses), len(want))
	}
	for _, from := range till.PayoutStatuses {
		var got strings.Builder
		for _, to := range till.PayoutStatuses {
			switch err := from.CanBecome(to); {
			case err == nil:
				got.WriteByte('x')
			case errors.Is(err, till.ErrSameStatus):
				got.WriteByte('=')
			case errors.Is(err, till.ErrFinal):
				got.WriteByte('F')
			case errors.Is(err, till.ErrIllegalTransition):
				got.WriteByte('.')
			}
		}
		if got.String() != want[from] {
			t.Errorf("from %s: got %s, want %s", from, got.String(), want[from])
		}
		if !from.Valid() || from.Final() != (len(till.PayoutTransitions[from]) == 0) {
			t.Errorf("%s: valid is %v, final is %v", from, from.Valid(), from.Final())
		}
	}
	for _, s := range []till.PayoutStatus{"", "expired", "CANCELLED"} {
		if s.Valid() || s.Final() || till.PayoutPending.CanBecome(s) == nil || s.CanBecome(till.PayoutSuccess) == nil {
			t.Errorf("%q passes for a status", s)
		}
	}
}

// newPayout returns a payout with something in every field.
func newPayout() *till.Payout {
	at := till.Time(1_760_000_000_123_456)
	return &till.Payout{
		ClientID: till.NewID(at), ID: till.NewID(at), IdempotencyKey: "0198C0DE-0000-7000-8000-00000000ABCD",
		Status: till.PayoutFailed, PreviousStatus: till.PayoutProcessing,
		Method: "mtn_momo", Country: "CG", Amount: till.Money{Minor: 5000, Currency: "XAF"}, Fee: 75, Phone: "242061234567", Reference: "refund-1",
		Document:          []byte(`"description":"A refund","recipient":{"phone":"242061234567"},"metadata":{"a":[1,2.50]}`),
		ProviderReference: "R1", FailureReason: till.RecipientNotFound, FailureDetail: &till.FailureDetail{ProviderCode: "NO", ProviderMessage: "None.", Retryable: true},
		CreatedAt: at, UpdatedAt: at.Add(time.Second), ExpiresAt: at.Add(time.Hour), SendWindow: time.Minute, LateSuccessAt: at.Add(2 * time.Second),
		Connection: "mtn", Fingerprint: "f",
		Resolution: till.Resolution{State: till.Confirmed, LastCheckedAt: at.Add(time.Second), Attempts: 3},
	}
}

func TestAPayoutIsReplayedAsItWasCreated(t *testing.T) {
	t.Parallel()
	p := newPayout()
	before := *p
	want := before
	want.Status, want.PreviousStatus = till.PayoutPending, ""
	want.ProviderReference, want.FailureReason, want.FailureDetail = "", "", nil
	want.UpdatedAt, want.ExpiresAt, want.LateSuccessAt = want.CreatedAt, want.CreatedAt.Add(60*time.Second), 0
	want.Resolution = till.Resolution{State: till.Waiting}
	if d := cmp.Diff(*p.AsCreated(), want); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
	if d := cmp.Diff(*p, before); d != "" {
		t.Errorf("the payout itself changed (-got +want)\n%s", d)
	}
	if p.Reserve() != 5075 {
		t.Errorf("it holds %d", p.Reserve())
	}
}

func TestAPayoutIsWritten(t *testing.T) {
	t.Parallel()
	p := newPayout()
	var got map[string]any
	if err := json.Unmarshal(p.AppendJSON(nil), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"id": p.ID.String(), "status": "failed", "method": "mtn_momo", "country": "CG",
		"amount": map[string]any{"value": "5000", "currency": "XAF"}, "fee": "75", "net": "5075", "reference": "refund-1",
		"idempotency_key": "0198C0DE-0000-7000-8000-00000000ABCD", "provider_reference": "R1", "failure_reason": "recipient_not_found",
		"failure_detail": map[string]any{"provider_code": "NO", "provider_message": "None.", "retryable": false}, // as it was paid after all
		"description":    "A refund", "recipient": map[string]any{"phone": "242061234567"}, "metadata": map[string]any{"a": []any{1.0, 2.5}},
		"created_at": "2025-10-09T08:53:20.123456Z", "updated_at": "2025-10-09T08:53:21.123456Z", "expires_at": "2025-10-09T09:53:20.123456Z",
		"late_success_at": "2025-10-09T08:53:22.123456Z",
		"resolution":      map[string]any{"state": "confirmed", "last_checked_at": "2025-10-09T08:53:21.123456Z", "next_check_at": nil, "attempts": 3.0},
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
	var empty map[string]any
	c := p.AsCreated()
	c.Country, c.Reference = "", ""
	if err := json.Unmarshal(c.AppendJSON(nil), &empty); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(empty)), slices.Sorted(maps.Keys(want))); d != "" {
		t.Errorf("members (-got +want)\n%s", d)
	}
}

func TestAnEventIsWrittenWithItsPayout(t *testing.T) {
	t.Parallel()
	p := newPayout()
	e := &till.Event{
		ClientID: p.ClientID, Sequence: 7, Kind: till.PayoutEventCancelled, SubjectID: p.ID, CreatedAt: p.CreatedAt + 1,
		Status: till.Status(till.PayoutCancelled), ExpiresAt: p.CreatedAt + 5, Resolution: till.Resolution{State: till.Confirmed},
	}
	was := e.PayoutSnapshot(p)
	want := `{"id":"` + e.ID().String() + `","type":"payout.cancelled","created_at":"2025-10-09T08:53:20.123457Z","api_version":"1.1","sequence":7,` +
		`"data":{"payout":` + string(was.AppendJSON(nil)) + `}}`
	if got := string(e.AppendPayoutJSON(nil, p)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if was.Status != till.PayoutCancelled || was.FailureReason != "" || was.ProviderReference != "" || was.Fee != p.Fee {
		t.Errorf("the snapshot is %+v", was)
	}
}
