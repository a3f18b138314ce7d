package rehearse

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"till"
	"till/webhook"
)

// The payments of a rehearsal.
const (
	usualAmount = 5000
	exactAmount = 999_999_999_999_999 // 15 digits, as large as an amount gets
	phone       = "242069870415"      // of nobody; no answer may show it
	bigMetadata = 16 << 10
)

// delivery is one request to the handler.
type delivery struct {
	method string
	header http.Header
	body   []byte
}

// builder makes the events of one payment.
type builder struct {
	payment  till.Payment
	client   till.ID
	sequence int64
	now      time.Time
	secret   webhook.Secret
}

// newBuilder returns a payment that only this check is about.
func newBuilder(check int, now time.Time, secret webhook.Secret) *builder {
	at := till.TimeOf(now)
	id := till.NewID(at)
	return &builder{
		client: till.NewID(at), sequence: int64(check * 100), now: now, secret: secret,
		payment: till.Payment{
			ID: id, IdempotencyKey: till.NewID(at).String(), Method: "mtn_momo", Country: "CG",
			Amount: till.Money{Minor: usualAmount, Currency: "XAF"}, Phone: phone,
			Reference: "CHECK-" + strconv.Itoa(check) + "-" + id.String()[30:], Document: document(`{"cart":"88"}`),
			CreatedAt: at, ExpiresAt: at + till.Time(time.Minute/time.Microsecond),
		},
	}
}

// document is the part of a payment that is echoed.
func document(metadata string) []byte {
	return []byte(`"description":"till webhook check","customer":{"phone":"` + phone + `","email":null,"name":null},"charge":null,"tax":null,"metadata":` + metadata)
}

// event returns the id and the body of the payment's next event, as the service writes it.
func (b *builder) event(kind till.EventKind, status till.Status) (id string, body []byte) {
	b.sequence++
	e := &till.Event{ClientID: b.client, Sequence: b.sequence, Kind: kind, SubjectID: b.payment.ID, Status: status, ExpiresAt: b.payment.ExpiresAt,
		CreatedAt: b.payment.CreatedAt + till.Time(b.sequence), Resolution: till.Resolution{State: till.Confirmed}}
	p := b.payment
	switch kind {
	case till.PaymentLateSuccess:
		p.LateSuccessAt = e.CreatedAt
	case till.PaymentReversed:
		p.ReversedAt = e.CreatedAt
	}
	if status == till.Expired {
		e.FailureReason = till.CustomerTimeout
	}
	return e.ID().String(), e.AppendJSON(nil, &p)
}

// signed returns a delivery of a body, made some time ago.
func (b *builder) signed(id string, body []byte, ago time.Duration) delivery {
	return delivery{http.MethodPost, webhook.Sign(id, b.now.Add(-ago), body, b.secret), body}
}

// success is the good event.
func (b *builder) success() delivery {
	id, body := b.event(till.PaymentSuccess, till.Success)
	return b.signed(id, body, 0)
}

// of returns an event that is signed well.
func (b *builder) of(kind till.EventKind, status till.Status) delivery {
	id, body := b.event(kind, status)
	return b.signed(id, body, 0)
}

// with returns the delivery with another header.
func (d delivery) with(name, value string) delivery {
	d.header = d.header.Clone()
	d.header.Set(name, value)
	return d
}

// without returns the delivery without a header.
func (d delivery) without(name string) delivery {
	d.header = d.header.Clone()
	d.header.Del(name)
	return d
}

// bodyOf returns the delivery with another body and the same signature.
func (d delivery) bodyOf(body []byte) delivery {
	d.body = body
	return d
}

// spaced writes the same JSON with other white space.
func spaced(body []byte) []byte {
	var out bytes.Buffer
	inText, escaped := false, false
	for _, c := range body {
		out.WriteByte(c)
		switch {
		case inText && escaped:
			escaped = false
		case inText && c == '\\':
			escaped = true
		case c == '"':
			inText = !inText
		case !inText && (c == ',' || c == ':'):
			out.WriteString(" \n")
		}
	}
	return append(out.Bytes(), '\n', ' ')
}

// metadataOf16KiB has emoji, escapes and long texts.
func metadataOf16KiB() string {
	const text = `"k%":"é 😀 \u00e9 \ud83d\ude00 \"quoted\" \\ \/ \n \u2028 $1 <b>&amp;</b>"`
	var out strings.Builder
	out.WriteString(`{"first":"1"`)
	for i := 0; out.Len() < bigMetadata-2*len(text); i++ {
		out.WriteString("," + strings.Replace(text, "%", strconv.Itoa(i), 1))
	}
	return out.String() + `,"last":"1"}`
}
