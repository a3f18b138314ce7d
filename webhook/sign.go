package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a delivery, in http.Header's spelling; HTTP ignores case.
const (
	HeaderID        = "Webhook-Id"        // the event's id, the same on every attempt
	HeaderTimestamp = "Webhook-Timestamp" // Unix seconds of this attempt
	HeaderSignature = "Webhook-Signature" // one v1,… per secret, separated by spaces
)

// Tolerance is how far a delivery's time may be from the receiver's clock, for Verify. The
// official libraries use the same.
const Tolerance = 5 * time.Minute

const (
	secretPrefix   = "whsec_"
	secretSize     = 32 // bytes of a new secret
	minSecretSize  = 24 // the least that Standard Webhooks allows
	maxSecretSize  = 64
	signatureLabel = "v1,"

	maxSignatures = 16 // signatures in one header that Verify reads; a rotation needs two
	maxTimestamp  = 12 // digits of a timestamp, enough for thirty thousand years
)

// Secret is the key that signs an endpoint's deliveries. Only Reveal writes it out.
// Printed, logged or encoded, it is hidden.
type Secret []byte

// NewSecret returns a random secret.
func NewSecret() Secret {
	s := make(Secret, secretSize)
	rand.Read(s) // never returns an error; it crashes the program instead
	return s
}

// ErrBadSecret says that a text is not a webhook secret.
var ErrBadSecret = errors.New("not a webhook secret: whsec_ and the base64 of 24 to 64 bytes")

// ParseSecret reads what Reveal writes.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok || len(encoded) > base64.StdEncoding.EncodedLen(maxSecretSize) || strings.ContainsAny(encoded, "\r\n") {
		return nil, ErrBadSecret
	}
	s, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(s) < minSecretSize || len(s) > maxSecretSize {
		return nil, ErrBadSecret
	}
	return s, nil
}

// Reveal returns the secret as its owner is shown it once.
func (s Secret) Reveal() string { return secretPrefix + base64.StdEncoding.EncodeToString(s) }

const hidden = secretPrefix + "[hidden]"

// Format implements fmt.Formatter: every verb hides the secret.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns an error, so that no encoder writes the secret by accident.
func (s Secret) MarshalText() ([]byte, error) {
	return nil, errors.New("a webhook secret is written by Reveal only")
}

// Sign returns the three headers of one attempt to deliver body: the id, the time, and one
// signature per secret. It panics without a secret, and for an id with a full stop: its
// signature would also be valid for another id and time.
func Sign(id string, at time.Time, body []byte, secrets ...Secret) http.Header {
	if len(secrets) == 0 || id == "" || strings.Contains(id, ".") {
		panic("webhook: a delivery is signed with an id without a full stop and at least one secret")
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]byte, 0, len(secrets)*(len(signatureLabel)+base64.StdEncoding.EncodedLen(sha256.Size)+1))
	for i, s := range secrets {
		if i > 0 {
			signatures = append(signatures, ' ')
		}
		signatures = appendSignature(signatures, s, id, timestamp, body)
	}
	return http.Header{
		HeaderID:        {id},
		HeaderTimestamp: {timestamp},
		HeaderSignature: {string(signatures)},
	}
}

// appendSignature appends v1, and the base64 of the MAC over id.timestamp.body.
func appendSignature(b []byte, s Secret, id, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, s)
	head := make([]byte, 0, 64)
	head = append(head, id...)
	head = append(head, '.')
	head = append(head, timestamp...)
	head = append(head, '.')
	h.Write(head)
	h.Write(body)
	var sum [sha256.Size]byte
	b = append(b, signatureLabel...)
	return base64.StdEncoding.AppendEncode(b, h.Sum(sum[:0]))
}

// The errors of Verify.
var (
	errMissingHeader = errors.New("a webhook header is missing")
	errBadTimestamp  = errors.New("the webhook timestamp is not a time")
	errTooOld        = errors.New("the webhook timestamp is too old")
	ErrTooNew        = errors.New("the webhook timestamp lies in the future")
	ErrNoMatch       = errors.New("no webhook signature matches")
)

// Verify is for receivers. It returns nil if one of the secrets signed exactly this id,
// time and body, and the time is within tolerance of now. Signatures are compared in
// constant time.
func Verify(header http.Header, body []byte, now time.Time, tolerance time.Duration, secrets ...Secret) error {
	id, timestamp, signatures := header.Get(HeaderID), header.Get(HeaderTimestamp), header.Get(HeaderSignature)
	if id == "" || timestamp == "" || signatures == "" {
		return errMissingHeader
	}
	at, ok := parseTimestamp(timestamp)
	switch {
	case !ok:
		return errBadTimestamp
	case at.Before(now.Add(-tolerance)):
		return errTooOld
	case at.After(now.Add(tolerance)):
		return ErrTooNew
	case strings.Contains(id, "."):
		return ErrNoMatch // see Sign: no honest sender makes one
	}
	for range maxSignatures {
		var given string
		given, signatures, ok = strings.Cut(signatures, " ")
		if strings.HasPrefix(given, signatureLabel) {
			for _, s := range secrets {
				if hmac.Equal([]byte(given), appendSignature(nil, s, id, timestamp, body)) {
					return nil
				}
			}
		}
		if !ok {
			break
		}
	}
	return ErrNoMatch
}

// parseTimestamp reads Unix seconds: digits and nothing else.
func parseTimestamp(text string) (time.Time, bool) {
	if len(text) > maxTimestamp || strings.Trim(text, "0123456789") != "" {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(n, 0), err == nil
}
