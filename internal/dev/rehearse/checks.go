package rehearse

import (
	"bytes"
	"net/http"
	"time"

	"till"
	"till/webhook"
)

// check is one of the 24. It sends steps, one after the other; the deliveries of one step go
// at the same time.
type check struct {
	name  string
	title string
	send  func(b *builder) [][]delivery
	judge func(s *seen) ruling
}

// one makes steps of one delivery each.
func one(deliveries ...delivery) (steps [][]delivery) {
	for _, d := range deliveries {
		steps = append(steps, []delivery{d})
	}
	return steps
}

// atOnce is how many copies go together.
const atOnce = 5

// The parts of the pages for developers that an advice points to. Each service has them at
// /docs/.
const (
	pageSignature  = "/docs/webhooks#signature"
	pageDuplicates = "/docs/webhooks#duplicates"
	pageOrder      = "/docs/webhooks#order"
	pageNew        = "/docs/webhooks#new"
	pageAnswer     = "/docs/webhooks#answer"
	pageRotate     = "/docs/webhooks#rotate"
)

// checks are the 24, in the order in which they are shown.
var checks = []check{
	{"good", "good event",
		func(b *builder) [][]delivery { return one(b.success()) },
		judgeGood},
	{"again", "the same again",
		func(b *builder) [][]delivery {
			id, body := b.event(till.PaymentSuccess, till.Success)
			return one(b.signed(id, body, time.Minute), b.signed(id, body, 0))
		},
		effect(1, "An event that comes again is not answered 2xx: Till would send it for three days. Answer 2xx to what you have already.",
			"The same event, sent again, is acted on again. Keep the event's id, or the step of the payment's money, in the transaction that acts.", pageDuplicates)},
	{"at-once", "five times at once",
		func(b *builder) [][]delivery {
			d := b.success()
			step := make([]delivery, atOnce)
			for i := range step {
				step[i] = d
			}
			return [][]delivery{step}
		},
		judgeAtOnce},
	{"stale", "success, then processing",
		func(b *builder) [][]delivery {
			id, old := b.event(till.PaymentProcessing, till.Processing)
			return one(b.success(), b.signed(id, old, 0))
		},
		effect(1, "Older news than what is known is not answered 2xx. Answer 2xx, and ignore it.",
			"News that is older than what is known changes the order. A payment's money only goes forward: ignore an event that is not a later step.", pageOrder)},
	{"wrong-secret", "signed with another secret",
		func(b *builder) [][]delivery {
			id, body := b.event(till.PaymentSuccess, till.Success)
			return one(delivery{http.MethodPost, webhook.Sign(id, b.now, body, webhook.NewSecret()), body})
		},
		refusal("An event that somebody else signed is accepted: anybody can say that an order is paid. Verify the signature before anything else.")},
	{"one-byte", "one byte changed",
		func(b *builder) [][]delivery {
			d := b.success()
			return one(d.bodyOf(bytes.Replace(d.body, []byte(`"value":"5000"`), []byte(`"value":"5001"`), 1)))
		},
		refusal("A body that was changed on the way is accepted. The signature covers id, timestamp and body: compute it from the bytes of this request.")},
	{"other-body", "signature of another body",
		func(b *builder) [][]delivery {
			other := newBuilder(0, b.now, b.secret).success()
			return one(b.success().with(webhook.HeaderSignature, other.header.Get(webhook.HeaderSignature)))
		},
		refusal("The signature of another event is accepted. Compute it from the id, the timestamp and the body of this request, and compare.")},
	{"missing-headers", "a header is missing",
		func(b *builder) [][]delivery {
			d := b.success()
			return one(d.without(webhook.HeaderID), d.without(webhook.HeaderTimestamp), d.without(webhook.HeaderSignature))
		},
		refusal("A request without one of the three webhook headers is accepted. Refuse it: nothing proves who sent it.")},
	{"old", "six minutes old",
		func(b *builder) [][]delivery {
			id, body := b.event(till.PaymentSuccess, till.Success)
			return one(b.signed(id, body, 6*time.Minute))
		},
		refusal("A delivery of six minutes ago is accepted: who has copied one can send it for ever. Refuse what is more than five minutes from your clock.")},
	{"ahead", "six minutes ahead",
		func(b *builder) [][]delivery {
			id, body := b.event(till.PaymentSuccess, till.Success)
			return one(b.signed(id, body, -6*time.Minute))
		},
		refusal("A delivery from six minutes ahead is accepted. Refuse what is more than five minutes from your clock, in both directions.")},
	{"just-inside", "four minutes fifty old",
		func(b *builder) [][]delivery {
			id, body := b.event(till.PaymentSuccess, till.Success)
			return one(b.signed(id, body, 4*time.Minute+50*time.Second))
		},
		effectOrStatus(1, "A delivery of 4 minutes 50 ago is refused. Allow five minutes either way, and look at the handler's clock.",
			"A delivery of 4 minutes 50 ago is accepted and not acted on.", pageSignature)},
	{"two-signatures", "two signatures, one unknown",
		func(b *builder) [][]delivery {
			id, body := b.event(till.PaymentSuccess, till.Success)
			other := webhook.Sign(id, b.now, body, webhook.NewSecret()).Get(webhook.HeaderSignature)
			d := b.signed(id, body, 0)
			return one(d.with(webhook.HeaderSignature, "v2,AAAA "+other+" "+d.header.Get(webhook.HeaderSignature)))
		},
		effectOrStatus(1, "Only one signature is read. While a secret is rotated there are several: accept if one matches, and ignore versions that you do not know.",
			"An event with several signatures is accepted and not acted on.", pageRotate)},
	{"white-space", "other white space, signed as sent",
		func(b *builder) [][]delivery {
			id, body := b.event(till.PaymentSuccess, till.Success)
			return one(b.signed(id, spaced(body), 0))
		},
		effectOrStatus(1, "The same JSON with other white space is refused, although it is signed as it was sent: you verify what a parser has made of the body. Verify the bytes as they came, and parse afterwards.",
			"An event with other white space is accepted and not acted on.", pageSignature)},
	{"unknown-kind", "unknown kinds",
		func(b *builder) [][]delivery {
			id := till.NewID(till.TimeOf(b.now)).String()
			strange := []byte(`{"id":"` + id + `","type":"refund.created","created_at":"2026-01-01T00:00:00.000000Z","api_version":"1.9","sequence":1,"data":{"refund":{"id":"r-1"}}}`)
			return one(b.of("payment.celebrated", till.Success), b.signed(id, strange, 0))
		},
		effectOrStatus(0, "An event of an unknown kind is not answered 2xx. New kinds come at any time: accept and ignore what you do not know.",
			"An event of an unknown kind is acted on. Act on the kinds that you know, whatever the payment's status.", pageNew)},
	{"unknown-members", "unknown members",
		func(b *builder) [][]delivery {
			id, body := b.event(till.PaymentSuccess, till.Success)
			body = bytes.Replace(body, []byte(`{"id":`), []byte(`{"new_member":{"a":[1,null]},"id":`), 1)
			body = bytes.Replace(body, []byte(`{"payment":{`), []byte(`{"hint":true,"payment":{"new_member":[{}],`), 1)
			return one(b.signed(id, body, 0))
		},
		effectOrStatus(1, "An event with members that you do not know is not answered 2xx. New members come at any time: ignore them.",
			"An event with members that you do not know is not acted on once.", pageNew)},
	{"unknown-status", "unknown status",
		func(b *builder) [][]delivery { return one(b.of(till.PaymentUpdated, "on_hold")) },
		effectOrStatus(0, "A status that you do not know is not answered 2xx. An unknown status is not final: accept it and wait.",
			"A status that you do not know is taken as paid. Only payment.success and payment.late_success mean money.", pageNew)},
	{"late-money", "late money after expired",
		func(b *builder) [][]delivery {
			return one(b.of(till.PaymentExpired, till.Expired), b.of(till.PaymentLateSuccess, till.Expired))
		},
		effect(1, "Money that came late is not answered 2xx.",
			"Money that came after the payment had expired is not acted on once. Go by the event's kind, payment.late_success: the status stays expired.", pageOrder)},
	{"reversed", "money taken back",
		func(b *builder) [][]delivery { return one(b.success(), b.of(till.PaymentReversed, till.Success)) },
		judgeReversed},
	{"large", "16 KiB of metadata, emoji, escapes",
		func(b *builder) [][]delivery {
			b.payment.Document = document(metadataOf16KiB())
			return one(b.success())
		},
		effectOrStatus(1, "An event with 16 KiB of metadata, emoji and escapes is not answered 2xx. Read bodies of up to 1 MiB, as UTF-8.",
			"An event with 16 KiB of metadata is not acted on once.", pageNew)},
	{"exact-amount", "amount of 15 digits",
		func(b *builder) [][]delivery {
			b.payment.Amount.Minor = exactAmount
			return one(b.success())
		},
		judgeAmount},
	{"get", "GET is not 2xx",
		func(*builder) [][]delivery { return one(delivery{method: http.MethodGet, header: http.Header{}}) },
		func(s *seen) ruling {
			if a := s.answers[0]; a.status >= 200 && a.status <= 299 {
				return failed("GET is answered like a webhook. Take POST only, so that no crawler or browser seems to bring an event.", pageAnswer)
			}
			return ruling{verdict: Passed}
		}},
	{"no-redirect", "no redirect", nil, judgeRedirects},
	{"nothing-secret", "nothing secret in the answers", nil, judgeSecrets},
	{"fast", "answered in time", nil, judgeTime},
}
