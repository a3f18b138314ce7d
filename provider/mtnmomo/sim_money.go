package mtnmomo

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"till/provider/simulator"
)

// scenarios are the numbers that have a story, by their last seven digits, so
// that MTN's documented test numbers (46733123450 and on) have it and so have
// numbers of a real country that end alike (242063123450). Any other number
// succeeds. From 3123470 on they are the simulator's own: MTN documents none
// for those cases.
var scenarios = map[string]struct{ payment, payout string }{
	"3123450": {"INTERNAL_PROCESSING_ERROR", "INTERNAL_PROCESSING_ERROR"},
	"3123451": {"APPROVAL_REJECTED", "REJECTED"},
	"3123452": {"EXPIRED", "EXPIRED"},
	"3123453": {simPending, simPending},
	"3123454": {simPending, simPending},
	"3123455": {"PAYER_NOT_FOUND", "NOT_ENOUGH_FUNDS"},
	"3123456": {"PAYEE_NOT_ALLOWED_TO_RECEIVE", "PAYER_LIMIT_REACHED"},
	"3123457": {"NOT_ALLOWED", "PAYEE_NOT_FOUND"},
	"3123458": {"NOT_ALLOWED_TARGET_ENVIRONMENT", "NOT_ALLOWED"},
	"3123459": {"INVALID_CALLBACK_URL_HOST", "NOT_ALLOWED_TARGET_ENVIRONMENT"},
	"3123460": {"INVALID_CURRENCY", "INVALID_CALLBACK_URL_HOST"},
	"3123461": {"INTERNAL_PROCESSING_ERROR", "INVALID_CURRENCY"},
	"3123462": {"SERVICE_UNAVAILABLE", "INTERNAL_PROCESSING_ERROR"},
	"3123463": {"COULD_NOT_PERFORM_TRANSACTION", "SERVICE_UNAVAILABLE"},
	"3123464": {"TRANSFER_TYPE_UNKNOWN", "TRANSFER_TYPE_UNKNOWN"},
	"3123470": {"NOT_ENOUGH_FUNDS", "NOT_ENOUGH_FUNDS"},
	"3123471": {"PAYER_LIMIT_REACHED", "PAYEE_NOT_ALLOWED_TO_RECEIVE"},
	"3123472": {"LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED", "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED"},
	"3123473": {simLate, simLate},
	"3123474": {simSilent, simSilent},
}

// refundScenarios are the values of referenceIdToRefund that have a story in MTN's sandbox.
// What a reference that is not known leads to is not published: here the refund fails.
var refundScenarios = map[string]string{
	"1": simNoOriginal, "2": "INTERNAL_PROCESSING_ERROR", "3": "REJECTED", "4": "EXPIRED", "5": simPending, "6": simPending, "7": "NOT_ALLOWED",
	"8": "NOT_ALLOWED_TARGET_ENVIRONMENT", "9": "INVALID_CALLBACK_URL_HOST", "10": "INVALID_CURRENCY", "11": "INTERNAL_PROCESSING_ERROR",
	"12": "SERVICE_UNAVAILABLE", "13": "COULD_NOT_PERFORM_TRANSACTION",
}

const simNoOriginal = "TRANSACTION_NOT_FOUND"

// original returns the number that a refund goes back to, and what becomes of it. Nothing here
// bounds the sum: it is not published that MTN does.
func (s *Simulator) original(reference string) (phone string, plan simulator.Plan) {
	word, known := refundScenarios[reference]
	paid, found := s.book.Find(simKind(collection), strings.ToLower(reference))
	if state, _ := paid.StateAt(s.book.Now()); !known && (!found || state != simulator.Success) {
		word, known = simNoOriginal, true
	}
	if !known {
		return paid.Phone, s.plan(paid.Phone, refunding)
	}
	return paid.Phone, s.planOf(word)
}

const (
	simPending = "PENDING" // for ever
	simLate    = "late"    // it expires, and succeeds after all a little later
	simSilent  = "silent"  // it succeeds, and no callback comes
)

// simLateBy is how long after its end late money comes.
const simLateBy = 2 * time.Second

// plan is what becomes of a request for the number.
func (s *Simulator) plan(phone string, k serviceKind) simulator.Plan {
	ending := scenarios[phone[max(0, len(phone)-7):]]
	if k.payout {
		return s.planOf(ending.payout)
	}
	return s.planOf(ending.payment)
}

// planOf is the plan of a word; "" means that it succeeds.
func (s *Simulator) planOf(word string) simulator.Plan {
	p := simulator.Plan{After: s.c.Decide, State: simulator.Success}
	switch word {
	case "":
	case simPending:
		p.State = simulator.Open
	case simLate:
		p.State, p.Code, p.Late = simulator.Expired, "EXPIRED", simLateBy
	case simSilent:
		p.Silent = true
	case "EXPIRED":
		p.State, p.Code = simulator.Expired, word
	default:
		p.State, p.Code = simulator.Failed, word
	}
	return s.injector.Plan(p, simLateBy)
}

// isUUIDv4 reports whether a text is a UUID of version 4, all that MTN takes.
func isUUIDv4(s string) bool {
	if len(s) != 36 || s[14] != '4' || strings.IndexByte("89abAB", s[19]) < 0 {
		return false
	}
	for i := range len(s) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if s[i] != '-' {
				return false
			}
		} else if !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
			return false
		}
	}
	return true
}

// invalidField says what MTN would answer 400 to, "" if nothing.
func invalidField(m *transferRequest, who *party) string {
	switch {
	case who == nil || who.Type != "MSISDN":
		return "partyIdType"
	case len(who.ID) < 8 || len(who.ID) > 15 || strings.Trim(who.ID, "0123456789") != "":
		return "partyId"
	case m.Amount == "" || strings.Trim(m.Amount, "0123456789.") != "" || strings.Trim(m.Amount, "0.") == "":
		return "amount"
	case utf8.RuneCountInString(m.PayerMessage) > maxNote || utf8.RuneCountInString(m.PayeeNote) > maxNote:
		return "more than 160 characters"
	case strings.ContainsAny(m.PayerMessage+m.PayeeNote, "'&\"<>"):
		return "special characters"
	}
	return ""
}

// create takes a request to pay, a transfer or a refund.
func (s *Simulator) create(w http.ResponseWriter, r *http.Request, k serviceKind) {
	ref := r.Header.Get("X-Reference-Id")
	var m transferRequest
	err := json.NewDecoder(r.Body).Decode(&m)
	who := m.Payer
	switch {
	case k == refunding && m.Original != "" && m.Payee == nil:
		who = &party{"MSISDN", "00000000"} // MTN knows who paid
	case k == disbursement:
		who = m.Payee
	}
	callback := r.Header.Get("X-Callback-Url")
	empty := len(r.Header.Values("X-Callback-Url")) > 0 && callback == ""
	switch {
	case !isUUIDv4(ref) || err != nil || empty || invalidField(&m, who) != "":
		w.WriteHeader(http.StatusBadRequest)
		return
	case m.Currency != simCurrencies[r.Header.Get("X-Target-Environment")]:
		simError(w, http.StatusInternalServerError, "INVALID_CURRENCY", "Currency not supported.")
		return
	case callback != "" && !s.mayCall(callback):
		simError(w, http.StatusInternalServerError, "INVALID_CALLBACK_URL_HOST", "Callback URL host is not valid.")
		return
	}
	phone, plan := who.ID, simulator.Plan{}
	if k == refunding {
		phone, plan = s.original(m.Original)
	} else {
		plan = s.plan(phone, k)
	}
	e, fresh, err := s.book.Add(simulator.Entry{Kind: simKind(k), Reference: strings.ToLower(ref), External: m.ExternalID, Phone: phone,
		Amount: m.Amount, Currency: m.Currency, Callback: callback, Data: m.PayerMessage, Receipt: simulator.Digits(10), Plan: plan})
	switch {
	case err != nil:
		simError(w, http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE", "Service temporarily unavailable, try again later.")
		return
	case !fresh:
		simError(w, http.StatusConflict, "RESOURCE_ALREADY_EXIST", "Duplicated reference id. Creation of resource failed.")
		return
	}
	// MTN sends it once, when it is decided.
	if e.Callback != "" && !e.Plan.Silent && e.Plan.State != simulator.Open {
		s.callbacks.Send(e.Plan.After, 0, func() *http.Request {
			b, _ := json.Marshal(s.statusBody(&e, k))
			return simulator.Post(s.c.CallbackMethod, e.Callback, b)
		})
	}
	w.WriteHeader(http.StatusAccepted)
}

func simKind(k serviceKind) string {
	switch k {
	case refunding:
		return "refund"
	case disbursement:
		return "payout"
	}
	return "payment"
}

// mayCall reports whether an address is on the registered host.
func (s *Simulator) mayCall(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (s.c.CallbackHost == "" || strings.EqualFold(u.Hostname(), s.c.CallbackHost))
}

// statusBody is what MTN says of a request.
func (s *Simulator) statusBody(e *simulator.Entry, k serviceKind) map[string]any {
	out := map[string]any{"externalId": e.External, "amount": e.Amount, "currency": e.Currency,
		"payerMessage": e.Data, "payeeNote": e.Data}
	who := party{"MSISDN", e.Phone}
	if k.payout {
		out["payee"] = who
	} else {
		out["payer"] = who
	}
	switch state, code := e.StateAt(s.book.Now()); state {
	case simulator.Open:
		out["status"] = "PENDING"
	case simulator.Success:
		out["status"], out["financialTransactionId"] = "SUCCESSFUL", e.Receipt
	default:
		out["status"], out["reason"] = "FAILED", code
		if s.c.ReasonObject {
			out["reason"] = map[string]string{"code": code, "message": "The request failed."}
		}
	}
	return out
}

func (s *Simulator) read(w http.ResponseWriter, r *http.Request, k serviceKind) {
	e, ok := s.book.Find(simKind(k), strings.ToLower(r.PathValue("ref")))
	switch {
	case !isUUIDv4(r.PathValue("ref")):
		w.WriteHeader(http.StatusBadRequest)
	case !ok:
		simError(w, http.StatusNotFound, "RESOURCE_NOT_FOUND", "Requested resource was not found.")
	default:
		simJSON(w, http.StatusOK, s.statusBody(&e, k))
	}
}

func (s *Simulator) balance(w http.ResponseWriter, r *http.Request, _ serviceKind) {
	simJSON(w, http.StatusOK, map[string]string{"availableBalance": "15000000", "currency": simCurrencies[r.Header.Get("X-Target-Environment")]})
}

// active answers as the sandbox does for its numbers.
func (s *Simulator) active(w http.ResponseWriter, r *http.Request, _ serviceKind) {
	id := r.PathValue("id")
	switch id[max(0, len(id)-7):] {
	case "3123450":
		simError(w, http.StatusNotFound, "RESOURCE_NOT_FOUND", "Requested resource was not found.")
	case "3123451":
		simJSON(w, http.StatusOK, map[string]bool{"result": false})
	case "3123452":
		simError(w, http.StatusInternalServerError, "NOT_ALLOWED", "Authorization failed. Insufficient permissions.")
	case "3123453":
		simError(w, http.StatusInternalServerError, "NOT_ALLOWED_TARGET_ENVIRONMENT", "Access to target environment is forbidden.")
	case "3123454":
		simError(w, http.StatusInternalServerError, "INTERNAL_PROCESSING_ERROR", "An internal error occurred while processing.")
	case "3123455":
		simError(w, http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE", "Service temporarily unavailable, try again later.")
	default:
		simJSON(w, http.StatusOK, map[string]bool{"result": true})
	}
}
