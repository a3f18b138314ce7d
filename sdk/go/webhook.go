package till

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// WebhookError says why a delivery is not believed, in one word.
type WebhookError struct {
	Word string
	Skew time.Duration // with too_old and too_new: how far its time is from ours
	hint string
}

func (e *WebhookError) Error() string { return "till: webhook: " + e.Word + e.hint }

// Is makes errors.Is compare by the word.
func (e *WebhookError) Is(target error) bool {
	other, ok := target.(*WebhookError)
	return ok && other.Word == e.Word
}

// Why a delivery is not believed.
var (
	ErrMissingHeader = &WebhookError{Word: "missing_header"}
	ErrBadSignature  = &WebhookError{Word: "bad_signature"}
	ErrTooOld        = &WebhookError{Word: "too_old"}
	ErrTooNew        = &WebhookError{Word: "too_new"}
	ErrTooLarge      = &WebhookError{Word: "too_large"}
	ErrMalformed     = &WebhookError{Word: "malformed"}
)

const secretPrefix = "whsec_"

// ErrBadSecret says that a text is no webhook secret.
var ErrBadSecret = errors.New("till: a webhook secret is whsec_ and the base64 of 24 to 64 bytes")

const (
	tolerance      = 5 * time.Minute
	maxDelivery    = 1 << 20
	maxSignatures  = 16
	maxTimestamp   = 12 // digits
	minSecretBytes = 24
	maxSecretBytes = 64
)

func readSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok || strings.ContainsAny(encoded, "\r\n") {
		return nil, ErrBadSecret
	}
	secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(secret) < minSecretBytes || len(secret) > maxSecretBytes {
		return nil, ErrBadSecret
	}
	return secret, nil
}

// Verify returns the event of a delivery if one of the secrets signed it within
// five minutes of now. Body is the bytes as they came, before anything parsed
// them. Signatures are looked at before the age, so that a stranger learns
// nothing about the clock.
func Verify(secrets []string, header http.Header, body []byte, now time.Time) (*Event, error) {
	if len(secrets) == 0 {
		return nil, ErrBadSecret
	}
	id, stamp, given := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp"), header.Get("Webhook-Signature")
	if id == "" || stamp == "" || given == "" {
		return nil, ErrMissingHeader
	}
	if len(body) > maxDelivery {
		return nil, ErrTooLarge
	}
	if len(stamp) > maxTimestamp || !digits(stamp) || len(stamp) > 1 && stamp[0] == '0' {
		return nil, ErrMissingHeader
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return nil, ErrMissingHeader
	}
	good := false
	for _, text := range secrets {
		secret, err := readSecret(text)
		if err != nil {
			return nil, err
		}
		good = signed(secret, id, stamp, given, body) || good
	}
	if !good {
		return nil, ErrBadSignature
	}
	switch skew := time.Unix(seconds, 0).Sub(now); {
	case skew < -tolerance:
		return nil, &WebhookError{Word: ErrTooOld.Word, Skew: skew}
	case skew > tolerance:
		return nil, &WebhookError{Word: ErrTooNew.Word, Skew: skew}
	}
	var e Event
	if json.Unmarshal(body, &e) != nil || e.ID == "" || e.Type == "" {
		return nil, ErrMalformed
	}
	return &e, nil
}

// signed reports whether one of the signatures is that of the secret.
func signed(secret []byte, id, stamp, given string, body []byte) bool {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.", id, stamp)
	mac.Write(body)
	want := mac.Sum(nil)
	found := false
	for i, signature := range strings.Fields(given) {
		if i == maxSignatures {
			break
		}
		encoded, ok := strings.CutPrefix(signature, "v1,")
		if !ok {
			continue
		}
		got, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if err == nil && hmac.Equal(got, want) {
			found = true
		}
	}
	return found
}

// Webhook receives deliveries: http.Handle("POST /till", teller.Webhook(secret)).
// Give the old secret too while a rotation lasts. It answers 204 when your
// function has been called or the news was old, 400 with one word for what is
// not believed, and 500 if your function failed: then the delivery comes again.
func (t *Teller[T]) Webhook(secrets ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "post", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, maxDelivery+1))
		if err != nil {
			http.Error(w, "cut", http.StatusBadRequest)
			return
		}
		if len(body) == 0 && r.ContentLength > 0 {
			// Something in front of this handler read the body.
			http.Error(w, "body_was_read: put the Till webhook before what parses bodies", http.StatusInternalServerError)
			return
		}
		e, err := Verify(secrets, r.Header, body, t.cfg.now())
		var refused *WebhookError
		switch {
		case errors.As(err, &refused):
			http.Error(w, refused.Word+t.clockHint(refused), http.StatusBadRequest)
			return
		case err != nil:
			http.Error(w, "no secret", http.StatusInternalServerError)
			return
		}
		if err := t.applyEvent(r.Context(), e, nil, t.cfg.foreign); err != nil {
			if t.cfg.onReport != nil {
				t.cfg.onReport(Report{}, err)
			}
			http.Error(w, "not done", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// clockHint names the difference of the clocks where an answer of the service
// told it: most deliveries that are too old are a clock that is wrong.
func (t *Teller[T]) clockHint(e *WebhookError) string {
	skew, known := t.client.ClockSkew()
	if e.Word != ErrTooOld.Word && e.Word != ErrTooNew.Word || !known || skew.Abs() < time.Minute {
		return ""
	}
	if skew > 0 {
		return fmt.Sprintf(": this machine's clock is %s behind the service's", skew)
	}
	return fmt.Sprintf(": this machine's clock is %s ahead of the service's", -skew)
}
