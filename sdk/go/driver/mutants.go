package driver

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	till "github.com/till-project/till/sdk/go"
)

// Mutants are the mistakes that can be switched on; the suite catches each.
var Mutants = []string{
	"new_key_per_try", "key_not_stored", "body_anew", "no_age_check", "signature_over_parsed", "duplicates_by_event_id", "rank_ignored",
	"conflict_retried", "retry_after_ignored", "float_amount", "offset_paging", "unknown_status_final", "function_outside",
	"lapse_forgotten", "foreign_handed_over", "history_shipped",
	"refund_new_key_per_try", "refund_booked_by_amount", "refund_booked_on_202",
	"ask_shipped", "overpaid_forgotten", "failed_ask_ends",
}

// transport carries requests, dies where it is told to, and makes mistakes.
type transport struct {
	crash  func(point string)
	mutant string
	http.Transport
}

var keyForm = regexp.MustCompile(`"idempotency_key":"[^"]*"`)

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	refund := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/refunds")
	create := refund || r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/payments") || strings.HasSuffix(r.URL.Path, "/payouts") || strings.HasSuffix(r.URL.Path, "/checkouts"))
	newKey := create && t.mutant == "new_key_per_try" || refund && t.mutant == "refund_new_key_per_try"
	var meant []byte // the body before the mistake
	if newKey || create && t.mutant == "body_anew" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		meant = bytes.Clone(body)
		if newKey {
			body = keyForm.ReplaceAll(body, fmt.Appendf(nil, `"idempotency_key":"%s"`, uuid()))
		} else {
			body = append(bytes.TrimSuffix(body, []byte("}")), fmt.Sprintf(`,"description":"at %d"}`, time.Now().UnixNano())...)
		}
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	res, err := t.Transport.RoundTrip(r)
	for n := 0; n < 3 && err == nil && res.StatusCode == http.StatusConflict && t.mutant == "conflict_retried"; n++ {
		res, err = t.Transport.RoundTrip(r)
	}
	if err != nil {
		return res, err
	}
	if create {
		t.crash("after_send")
	}
	if t.mutant == "retry_after_ignored" {
		res.Header.Del("Retry-After")
	}
	if t.mutant == "unknown_status_final" || newKey || asksAlone(t.mutant) {
		return res, t.rewrite(res, meant)
	}
	return res, nil
}

// rewrite changes an answer as the mistake would read it: a status that is not
// known as failed; and the key that was sent as the one that was meant.
func (t *transport) rewrite(res *http.Response, meant []byte) error {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	switch {
	case t.mutant == "unknown_status_final":
		body = unknownFinal(body)
	case asksAlone(t.mutant):
		body = withoutCheckouts(body)
	default:
		body = keyForm.ReplaceAll(body, keyForm.Find(meant))
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Del("Content-Length")
	return nil
}

var statusForm = regexp.MustCompile(`"status":"([a-z_]+)","method"`)

func unknownFinal(body []byte) []byte {
	return statusForm.ReplaceAllFunc(body, func(m []byte) []byte {
		switch string(statusForm.FindSubmatch(m)[1]) {
		case till.Pending, till.Processing, till.Success, till.Failed, till.Expired, till.Cancelled:
			return m
		}
		return []byte(`"status":"failed","method"`)
	})
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// store dies where it is told to, and makes mistakes.
type store[T any] struct {
	till.Store[T]
	crash  func(point string)
	mutant string
}

func (s *store[T]) Put(ctx context.Context, tx T, row till.Row) (bool, error) {
	s.crash("before_write")
	return s.Store.Put(ctx, tx, row)
}

func (s *store[T]) Count(ctx context.Context, row till.Row, lease, next time.Time) (bool, error) {
	ok, err := s.Store.Count(ctx, row, lease, next)
	if ok {
		s.crash("after_count")
	}
	return ok, err
}

func (s *store[T]) Settle(ctx context.Context, x till.Settlement) (bool, error) {
	s.crash("after_answer")
	return s.Store.Settle(ctx, x)
}

type eventKey struct{}

func (s *store[T]) Apply(ctx context.Context, subject, kind, key string, fn func(context.Context, T, till.Subject, []till.Row) (till.Decision, error)) error {
	if s.mutant == "duplicates_by_event_id" {
		if subject, _ = ctx.Value(eventKey{}).(string); subject == "" {
			subject = uuid()
		}
	}
	return s.Store.Apply(ctx, subject, kind, key, func(ctx context.Context, tx T, x till.Subject, rows []till.Row) (till.Decision, error) {
		if s.mutant == "rank_ignored" || s.mutant == "duplicates_by_event_id" {
			x.Rank = 0
			for i := range rows {
				rows[i].Status = "" // it says the same
			}
		}
		decision, err := fn(ctx, tx, x, rows)
		s.crash("after_function")
		return decision, err
	})
}

// mutated is the receiver of webhooks with a mistake.
func mutated(mutant string, secrets []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch mutant {
		case "no_age_check":
			rejuvenate(r, secrets)
		case "signature_over_parsed":
			var v any
			if json.NewDecoder(r.Body).Decode(&v) == nil {
				body, _ := json.Marshal(v)
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
		case "ask_shipped", "failed_ask_ends":
			// Its answers to reads are enough.
		case "duplicates_by_event_id":
			r = r.WithContext(context.WithValue(r.Context(), eventKey{}, r.Header.Get("Webhook-Id")))
		case "unknown_status_final":
			// Its answers to reads are enough.
		}
		next.ServeHTTP(w, r)
	})
}

// rejuvenate signs a good delivery as if it came now.
func rejuvenate(r *http.Request, secrets []string) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	sign := func(secret, stamp string) string {
		key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("Webhook-Id"), stamp, body)
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	for _, secret := range secrets {
		if strings.Contains(r.Header.Get("Webhook-Signature"), sign(secret, r.Header.Get("Webhook-Timestamp"))) {
			now := strconv.FormatInt(time.Now().Unix(), 10)
			r.Header.Set("Webhook-Timestamp", now)
			r.Header.Set("Webhook-Signature", sign(secret, now))
			return
		}
	}
}

// major reads an amount in units of the currency; with floats, as one should not.
func (d *driver[T]) major(c command) (till.Money, error) {
	if d.mutant != "float_amount" {
		return till.Major(c.Major, c.Currency)
	}
	f, err := strconv.ParseFloat(c.Major, 64)
	return till.Minor(strconv.FormatInt(int64(f*100), 10), c.Currency), err
}

func floated(text string) till.Decimal {
	f, _ := strconv.ParseFloat(text, 64)
	return till.Decimal(strconv.FormatFloat(f, 'f', 6, 64))
}

// byOffset pages as one should not.
func (d *driver[T]) byOffset(ctx context.Context, c command) iter.Seq2[*till.Payment, error] {
	return func(yield func(*till.Payment, error) bool) {
		for offset := 0; ; {
			page, err := d.client.Payments.Page(ctx, till.PaymentFilter{Status: c.Status, OldestFirst: c.Kind == "asc", Limit: 200, Offset: offset})
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			if offset += len(page.Items); int64(offset) >= page.Total || len(page.Items) == 0 {
				return
			}
		}
	}
}

// actOutside notes what the shop did beside the transaction.
func (d *driver[T]) actOutside(order, what string) error {
	f, err := os.OpenFile(filepath.Join(d.state, "outside"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s\t%s\n", order, what)
	return errors.Join(err, f.Close())
}

// acted tells what the shop did, in its transactions and beside them.
func (d *driver[T]) acted(ctx context.Context) result {
	acted, err := d.shop.Acted(ctx)
	if err != nil {
		return told(err, nil)
	}
	text, _ := os.ReadFile(filepath.Join(d.state, "outside"))
	for line := range strings.Lines(string(text)) {
		if order, what, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			acted[order] = append(acted[order], what)
		}
	}
	return result{"acted": acted}
}
