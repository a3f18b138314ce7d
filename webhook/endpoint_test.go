package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"till"
	"till/internal/seal"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
	"till/store/webhooks"
)

// acting is the acts on endpoints, with nobody to deliver.
func acting(t *testing.T, s *store.Store) *Endpoints {
	t.Helper()
	vault, err := NewSecretSealer(seal.Single([]byte("a secret for tests only")))
	if err != nil {
		t.Fatal(err)
	}
	return &Endpoints{Store: s, Secrets: vault, Sender: NewSender(SenderConfig{})}
}

// refused returns the code of the first field of a refusal.
func refused(err error) string {
	var e *till.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return fmt.Sprint(err)
	}
	return e.Fields[0].Pointer + " " + string(e.Fields[0].Code)
}

func TestTheBoundsOfEndpoints(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a, client, ctx := acting(t, s), storetest.NewClient(t, s, till.Test), t.Context()
		collector := storetest.NewCollector(t, s)
		url, off := "https://93.184.216.34/hooks", false
		create := func(enabled *bool) (*webhooks.Endpoint, error) {
			made, err := a.Create(ctx, client, &Request{URL: &url, Events: &[]string{"*"}, Enabled: enabled}, awa)
			if err != nil {
				return nil, err
			}
			return made.Endpoint, nil
		}
		disabled, err := create(&off)
		if err != nil || disabled.Enabled || disabled.DisableReason != till.DisabledByClient {
			t.Fatalf("made switched off: %+v, %v", disabled, err)
		}
		var e *webhooks.Endpoint
		for range MaxEndpoints - 1 {
			if e, err = create(nil); err != nil {
				t.Fatal(err)
			}
		}
		_, err = create(nil)
		expect(t, "one more", refused(err), " too_many")

		payment := storetest.NewPayment(t, collector, client, storetest.Body{})
		event := till.EventID(client.ID, 1, payment.CreatedAt)
		for range maxRequestedPending {
			if _, err := a.Test(ctx, client.ID, e.ID, "Awa"); err != nil {
				t.Fatal(err)
			}
			storetest.NewPayment(t, collector, client, storetest.Body{}) // so that each test has a place of its own
		}
		_, err = a.Redeliver(ctx, client.ID, event, &e.ID, awa)
		expect(t, "one more delivery", refused(err), " too_many")
		from := int64(1)
		for range maxReplays {
			if _, err := a.Replay(ctx, client.ID, e.ID, &Replay{From: &from}, awa); err != nil {
				t.Fatal(err)
			}
		}
		_, err = a.Replay(ctx, client.ID, e.ID, &Replay{From: &from}, awa)
		expect(t, "one more replay", refused(err), " too_many")

		asked, err := a.Redeliver(ctx, client.ID, event, &disabled.ID, awa)
		if till.ErrorCode(err) != till.CodeEndpointDisabled {
			t.Errorf("to a disabled endpoint: %v, %v", asked, err)
		}
		if err := a.Delete(ctx, client.ID, e.ID, "Awa"); err != nil {
			t.Fatal(err)
		}
		asked, err = a.Redeliver(ctx, client.ID, event, nil, awa)
		if err != nil || len(asked) != MaxEndpoints-2 {
			t.Errorf("to all: %d endpoints, %v; want the enabled ones", len(asked), err)
		}
		for _, id := range []till.ID{till.EventID(client.ID, 1, 1), till.EventID(client.ID, 1000, payment.CreatedAt), payment.ID} {
			if _, err := a.Redeliver(ctx, client.ID, id, nil, awa); till.ErrorCode(err) != till.CodeEventNotFound {
				t.Errorf("an event that is not there: %v", err)
			}
		}
	})
}

func TestActsOnEndpointsAreAudited(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a, client, ctx := acting(t, s), storetest.NewClient(t, s, till.Live), t.Context()
		url, on, off := "https://93.184.216.34/hooks", true, false
		made, err := a.Create(ctx, client, &Request{URL: &url, Events: &[]string{"payment.success"}}, awa)
		if err != nil {
			t.Fatal(err)
		}
		e, secret := made.Endpoint, made.Secret
		for _, r := range []*Request{{}, {Enabled: &on}, {URL: &url}, {Enabled: &off}, {Enabled: &on}} { // the first three change nothing
			if _, err := a.Patch(ctx, client, e.ID, r, awa); err != nil {
				t.Fatal(err)
			}
		}
		rotated, second, err := a.Rotate(ctx, client.ID, e.ID, DefaultOverlap, nil, awa)
		if err != nil || string(secret) == string(second) || rotated.OldUntil == 0 {
			t.Errorf("rotated into %+v, %v", rotated, err)
		}
		for i, sealed := range [][]byte{rotated.OldSecret, rotated.Secret} {
			if got, err := a.Secrets.Open(sealed, client.ID, e.ID); err != nil || string(got) != string([]Secret{secret, second}[i]) {
				t.Errorf("secret %d does not open: %v", i, err)
			}
		}
		if err := a.Delete(ctx, client.ID, e.ID, "Awa"); err != nil {
			t.Fatal(err)
		}
		var acts []string
		err = s.View(ctx, func(tx *store.Tx) error {
			rows, err := auditlog.Read(ctx, tx, client.ID, 0, 100)
			for _, r := range rows {
				acts = append(acts, strings.TrimPrefix(r.Action, "webhook_endpoint."))
				if r.Actor != "Awa" || r.SubjectID != e.ID || strings.Contains(r.Detail, "whsec") {
					t.Errorf("audit row %+v", r)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "acts", strings.Join(acts, " "), "create patch patch rotate delete")
		for name, f := range map[string]func(ctx context.Context) error{
			"patch":  func(ctx context.Context) error { _, err := a.Patch(ctx, client, e.ID, &Request{}, awa); return err },
			"rotate": func(ctx context.Context) error { _, _, err := a.Rotate(ctx, client.ID, e.ID, 0, nil, awa); return err },
			"test":   func(ctx context.Context) error { _, err := a.Test(ctx, client.ID, e.ID, "Awa"); return err },
			"delete": func(ctx context.Context) error { return a.Delete(ctx, client.ID, e.ID, "Awa") },
		} {
			if err := f(ctx); till.ErrorCode(err) != till.CodeEndpointNotFound {
				t.Errorf("%s what is deleted: %v", name, err)
			}
		}
	})
}
