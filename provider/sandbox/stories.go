package sandbox

import "till"

// Story is one line of the table of stories, for those who choose one by name.
// What is written here is what the API shows; a test plays every line.
type Story struct {
	Subject     string // payment, payout or refund
	Name        string
	EndsIn      string // the last digits of the phone, of a refund that of who paid; "": every phone that no other story has
	Description string
	Status      string             // in which the subject is left
	Reason      till.FailureReason // "": none
	Events      []till.EventKind   // those that come in any case, in order; processing may come too
}

// Stories returns the table. Nobody may change it.
func Stories() []Story { return stories }

// The events that stories begin with.
var (
	taken     = []till.EventKind{till.PaymentPending, till.PaymentProcessing}
	sent      = []till.EventKind{till.PayoutEventPending, till.PayoutEventProcessing}
	succeeded = endWith(taken, till.PaymentSuccess)
	failed    = endWith(taken, till.PaymentFailed)
	paid      = endWith(sent, till.PayoutEventSuccess)
	returned  = []till.EventKind{till.RefundPending, till.RefundProcessing}
	refunded  = endWith(returned, till.RefundSuccess)
)

func endWith(begin []till.EventKind, end ...till.EventKind) []till.EventKind {
	return append(append([]till.EventKind(nil), begin...), end...)
}

var stories = []Story{
	{"payment", "approved", string(approves), "The customer approves after a second.", "success", "", succeeded},
	{"payment", "asks", string(asksPerson), "A person decides: see GET /sandbox/prompts. Undecided, it expires.", "expired", till.CustomerTimeout, endWith(taken, till.PaymentExpired)},
	{"payment", "declined", string(declines), "The customer declines.", "failed", till.CustomerDeclined, failed},
	{"payment", "no_answer", string(neverAnswers), "The customer never answers.", "expired", till.CustomerTimeout, endWith(taken, till.PaymentExpired)},
	{"payment", "no_funds", string(noFunds), "The customer has too little money.", "failed", till.InsufficientFunds, failed},
	{"payment", "unknown_payer", string(unknownPayer), "No wallet has this number; refused on the spot.", "failed", till.PayerNotFound, []till.EventKind{till.PaymentPending, till.PaymentFailed}},
	{"payment", "limit_reached", string(limitReached), "The customer's limit is reached.", "failed", till.PayerLimitReached, failed},
	{"payment", "wrong_pin", string(wrongPIN), "The customer types a wrong PIN.", "failed", till.WrongPIN, failed},
	{"payment", "lost_answer", string(lostAnswer), "The operator's answer is lost; the customer approves.", "success", "", []till.EventKind{till.PaymentPending, till.PaymentSuccess}},
	{"payment", "lost_request", string(lostRequest), "The first request never arrives; it is sent again.", "success", "", succeeded},
	{"payment", "late_money", string(lateMoney), "It expires; the money comes two seconds later, without a callback.", "expired", till.CustomerTimeout, endWith(taken, till.PaymentExpired, till.PaymentLateSuccess)},
	{"payment", "stuck", string(stuck), "The operator says for ever that it is open.", "processing", "", endWith(taken, till.PaymentNeedsAttention)},
	{"payment", "five_callbacks", string(fiveCallbacks), "The operator calls back five times at once.", "success", "", succeeded},
	{"payment", "early_callback", string(earlyCallback), "The operator calls back before it answers.", "success", "", succeeded},
	{"payment", "no_callback", string(noCallback), "The operator never calls back.", "success", "", succeeded},
	{"payment", "lying_callback", string(lyingCallback), "The callback says success; the customer declined.", "failed", till.CustomerDeclined, failed},
	{"payment", "other_amount", string(otherAmount), "Another amount comes than was asked for; nothing is credited.", "processing", "", endWith(taken, till.PaymentNeedsAttention)},
	{"payment", "reversed", string(reverses), "The operator takes the money back three seconds after the approval.", "success", "", endWith(succeeded, till.PaymentReversed)},

	{"payout", "paid", string(approves), "The recipient has the money after a second.", "success", "", paid},
	{"payout", "unknown_recipient", string(unknownPayer), "No wallet has this number; refused on the spot.", "failed", till.RecipientNotFound, []till.EventKind{till.PayoutEventPending, till.PayoutEventFailed}},
	{"payout", "limit_reached", string(limitReached), "The recipient's limit is reached.", "failed", till.RecipientLimitReached, endWith(sent, till.PayoutEventFailed)},
	{"payout", "lost_answer", string(lostAnswer), "The operator's answer is lost; the money arrives.", "success", "", []till.EventKind{till.PayoutEventPending, till.PayoutEventSuccess}},
	{"payout", "lost_request", string(lostRequest), "The first request never arrives; it is sent again.", "success", "", paid},
	{"payout", "late_money", string(lateMoney), "It fails, and is paid two seconds later, without a callback.", "failed", till.ProviderError, endWith(sent, till.PayoutEventFailed, till.PayoutEventLateSuccess)},
	{"payout", "stuck", string(stuck), "The operator says for ever that it is on its way.", "processing", "", endWith(sent, till.PayoutNeedsAttention)},
	{"payout", "five_callbacks", string(fiveCallbacks), "The operator calls back five times at once.", "success", "", paid},
	{"payout", "no_callback", string(noCallback), "The operator never calls back.", "success", "", paid},
	{"payout", "held_back", string(heldBack), "It is sent only after five seconds, so that it can be cancelled.", "success", "", paid},

	{"refund", "refunded", string(approves), "The customer has the money back after a second.", "success", "", refunded},
	{"refund", "limit_reached", "0031", "The limit of the customer's wallet is reached.", "failed", till.RecipientLimitReached, endWith(returned, till.RefundFailed)},
	{"refund", "stuck", "0032", "The operator says for ever that it is on its way.", "processing", "", endWith(returned, till.RefundNeedsAttention)},
	{"refund", "late_money", "0033", "It fails, and is paid two seconds later, without a callback.", "failed", till.ProviderError, endWith(returned, till.RefundFailed, till.RefundLateSuccess)},
	{"refund", "lost_answer", "0034", "The operator's answer is lost; the money arrives.", "success", "", []till.EventKind{till.RefundPending, till.RefundSuccess}},
	{"refund", "held_back", "0035", "It is sent only after five seconds, so that it can be cancelled.", "success", "", refunded},
	{"refund", "by_transfer", "0036", "The operator has no refund call: the money goes back by a transfer.", "success", "", refunded},
}

// refundEndings are the stories of refunds by the last digits of the phone. Payments on these
// numbers succeed, and so do payouts to them. 0036 has none: its refund arrives, too, by a
// transfer.
var refundEndings = map[story]story{
	"0031": limitReached,
	"0032": stuck,
	"0033": lateMoney,
	"0034": lostAnswer,
	"0035": heldBack,
}

// endings are the stories by subject and last digits.
var endings = func() map[kind]map[story]bool {
	out := map[kind]map[story]bool{payment: {}, payout: {}, refund: {}}
	for _, s := range stories {
		out[kind(s.Subject)][story(s.EndsIn)] = true
	}
	return out
}()

// storyOf returns the story of a phone number. Of what can happen to a
// customer, little can happen to a recipient.
func storyOf(k kind, phone string) story {
	if len(phone) < 4 {
		return approves
	}
	if k == refund {
		return refundEndings[story(phone[len(phone)-4:])]
	}
	if k != payout {
		k = payment
	}
	if s := story(phone[len(phone)-4:]); endings[k][s] {
		return s
	}
	return approves
}
