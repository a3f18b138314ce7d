package till_test

import (
	"strings"
	"testing"

	"till"
)

func TestAnEventIsWrittenWithItsPayment(t *testing.T) {
	t.Parallel()
	created := till.Time(1_700_000_000_000_000)
	p := &till.Payment{
		ID: till.NewID(created), IdempotencyKey: "K", Method: "mtn_momo", Amount: till.Money{Minor: 5000, Currency: "XAF"},
		Document: []byte(`"metadata":{"a":1}`), CreatedAt: created,
		// What has happened since does not show.
		Status: till.Expired, UpdatedAt: created + 9, ProviderReference: "LATER", FailureReason: till.CustomerTimeout, LateSuccessAt: created + 8, ReversedAt: created + 9,
	}
	e := &till.Event{
		ClientID: till.ID{1}, Sequence: 7, Kind: till.PaymentProcessing, SubjectID: p.ID, CreatedAt: created + 1,
		Status: till.Processing, ExpiresAt: created + 5, Resolution: till.Resolution{State: till.Waiting, Attempts: 2},
	}
	was := e.Snapshot(p)
	want := `{"id":"` + e.ID().String() + `","type":"payment.processing","created_at":"2023-11-14T22:13:20.000001Z","api_version":"1.1","sequence":7,` +
		`"data":{"payment":` + string(was.AppendJSON(nil)) + `}}`
	if got := string(e.AppendJSON(nil, p)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, part := range []string{`"status":"processing"`, `"provider_reference":null`, `"failure_reason":null`, `"metadata":{"a":1}`, `"late_success_at":null`, `"reversed_at":null`,
		`"updated_at":"2023-11-14T22:13:20.000001Z"`, `"expires_at":"2023-11-14T22:13:20.000005Z"`, `"attempts":2`} {
		if !strings.Contains(want, part) {
			t.Errorf("no %s in %s", part, want)
		}
	}
	e.Kind = "webhook_endpoint.disabled"
	if got := string(e.AppendJSON(nil, nil)); !strings.HasSuffix(got, `"sequence":7,"data":{}}`) {
		t.Errorf("an event about something else is %s", got)
	}
}

func TestEveryKindHasASubjectAndAScope(t *testing.T) {
	t.Parallel()
	for kind, want := range map[till.EventKind]struct {
		subject string
		scope   till.Scope
	}{
		till.PaymentLateSuccess:     {"payment", till.PaymentsRead},
		"payout.cancelled":          {"payout", till.PayoutsRead},
		"webhook_endpoint.disabled": {"webhook_endpoint", till.WebhooksManage},
	} {
		if kind.Subject() != want.subject || kind.Scope() != want.scope {
			t.Errorf("%s is about %s and needs %s", kind, kind.Subject(), kind.Scope())
		}
	}
}
