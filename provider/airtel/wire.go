package airtel

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"till"
	"till/provider"
	"till/provider/wire"
)

// push is the body of a collection.
type push struct {
	Reference   string      `json:"reference"`
	Subscriber  subscriber  `json:"subscriber"`
	Transaction transaction `json:"transaction"`
}

type subscriber struct {
	Country  string `json:"country"`
	Currency string `json:"currency"`
	MSISDN   string `json:"msisdn"` // without the calling code
}

type transaction struct {
	Amount   json.Number `json:"amount"` // a number, never a string
	Country  string      `json:"country,omitempty"`
	Currency string      `json:"currency,omitempty"`
	ID       string      `json:"id"`
	Type     string      `json:"type,omitempty"`
}

// disbursement is the body of a payout.
type disbursement struct {
	Payee       payee       `json:"payee"`
	Reference   string      `json:"reference"`
	PIN         string      `json:"pin"`
	Transaction transaction `json:"transaction"`
}

type payee struct {
	Currency string `json:"currency"`
	MSISDN   string `json:"msisdn"`
}

// transactionID returns a reference as Airtel's transaction id: 4 to 64 letters and digits.
// With a hyphen the enquiry fails later, as was seen in Congo.
func transactionID(id till.ID) string { return hex.EncodeToString(id[:]) }

// parseTransactionID parses a transaction id; zero if it is not ours.
func parseTransactionID(id string) (ref till.ID) {
	b, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil || len(b) != len(ref) {
		return till.ID{}
	}
	return till.ID(b)
}

// answer is Airtel's answer: its envelope, the gateway's, or OAuth's.
type answer struct {
	Data   transactionData `json:"data"`
	Status struct {
		Code         wire.Text `json:"code"`
		Message      wire.Text `json:"message"`
		ResultCode   wire.Text `json:"result_code"`
		ResponseCode wire.Text `json:"response_code"`
		Success      wire.Text `json:"success"`
	} `json:"status"`
	RouterMessage wire.Text `json:"status_message"`
	RouterCode    wire.Text `json:"status_code"`
	Error         wire.Text `json:"error"`
}

// transactionData is the transaction in an answer. Without one it is absent, null, an empty
// string or an empty list.
type transactionData struct {
	ID, Status, Message, Receipt, ReferenceID string
}

// UnmarshalJSON accepts an object, and any empty value for none.
func (n *transactionData) UnmarshalJSON(b []byte) error {
	*n = transactionData{}
	if len(b) == 0 || b[0] != '{' {
		switch string(bytes.Join(bytes.Fields(b), nil)) {
		case "null", `""`, "[]":
			return nil
		}
		return errors.New("data: an object was expected")
	}
	var d struct {
		Transaction struct {
			ID        wire.Text `json:"id"`
			Status    wire.Text `json:"status"`
			Message   wire.Text `json:"message"`
			AirtelID  wire.Text `json:"airtel_money_id"`
			Reference wire.Text `json:"reference_id"`
		} `json:"transaction"`
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return err
	}
	t := d.Transaction
	*n = transactionData{string(t.ID), string(t.Status), string(t.Message), string(t.AirtelID), string(t.Reference)}
	return nil
}

// code returns the code of an answer: the newest kind that it has.
func (a *answer) code() string {
	for _, c := range []wire.Text{a.Status.ResponseCode, a.Status.ResultCode, a.RouterCode} {
		if c != "" {
			return strings.ToUpper(strings.TrimSpace(string(c)))
		}
	}
	return ""
}

// failed reports whether the envelope says that the call did not succeed.
func (a *answer) failed() bool { return strings.EqualFold(string(a.Status.Success), "false") }

func (a *answer) message() string {
	for _, m := range []string{string(a.Status.Message), a.Data.Message, string(a.RouterMessage)} {
		if m != "" {
			return wire.Truncate(m, maxMessage)
		}
	}
	return ""
}

// How much of Airtel's texts is kept.
const (
	maxCode    = 100
	maxMessage = 300
)

// isReadableStatus reports whether the body of an answer with this HTTP status may be
// Airtel's: most rejections come with 200, some with 400. Any other status is an error,
// whatever the body says. 404 may only say that a transaction is not found.
func isReadableStatus(status int) bool {
	return status == http.StatusOK || status == http.StatusBadRequest
}

// readSubmit reads the answer to a submit. It ignores the transaction's own status, which
// is SUCCESS, or even TS, before the customer has typed a PIN. A disbursement's TS is
// probably true, and the enquiry will repeat it.
func (p *service) readSubmit(r *wire.Reply) (provider.Result, error) {
	var a answer
	if !isReadableStatus(r.Status) {
		return provider.Result{}, fmt.Errorf("Airtel answered %d", r.Status)
	}
	if err := wire.Decode(r.Body, &a); err != nil {
		return provider.Result{}, fmt.Errorf("Airtel answered %d: %w", r.Status, err)
	}
	code := a.code()
	m := codes[code]
	switch m.class {
	case inProcess:
		return provider.Result{Outcome: provider.Accepted}, nil
	case succeeded:
		if !a.failed() && r.Status == http.StatusOK {
			return provider.Result{Outcome: provider.Accepted}, nil
		}
	case duplicate:
		return provider.Result{Outcome: provider.Duplicate, Code: code}, nil
	case rejectedCode:
		reason := p.reason(m.reason)
		return provider.Result{Outcome: provider.Rejected, Reason: reason,
			Code: code, Message: a.message(), Retryable: m.retryable, OurFault: p.ourFault(reason, code, m)}, nil
	}
	return provider.Result{}, fmt.Errorf("Airtel answered %d with code %q, which decides nothing", r.Status, wire.Truncate(code, maxCode))
}

// reason returns a code's reason for this kind of request.
func (p *service) reason(r till.FailureReason) till.FailureReason {
	if p.payout {
		return payoutReason(r)
	}
	return r
}

// ourFault says what a code shows about our own wallet, "" if nothing. For a payout, each
// code that means provider_unavailable does.
func (p *service) ourFault(reason till.FailureReason, code string, m codeMeaning) string {
	if !p.payout || reason != till.ProviderUnavailable {
		return ""
	}
	return "Airtel answers " + code + " to a payout (" + m.description + "): look at the disbursement wallet and its PIN"
}

// readCheck reads the answer to an enquiry. Only the transaction's own status is final, and
// only if the code beside it does not contradict it.
func (p *service) readCheck(r *wire.Reply, q provider.Query) (provider.Result, error) {
	var a answer
	if !isReadableStatus(r.Status) && r.Status != http.StatusNotFound {
		return provider.Result{}, fmt.Errorf("Airtel answered %d", r.Status)
	}
	if err := wire.Decode(r.Body, &a); err != nil {
		return provider.Result{}, fmt.Errorf("Airtel answered %d: %w", r.Status, err)
	}
	code, status := a.code(), a.Data.Status
	m := codes[code]
	// "Not found" beside TF means that Airtel does not know the id yet. It is no failure.
	if m.class == notFound && (status == "" || status == "TF") {
		return provider.Result{Outcome: provider.NotFound}, nil
	}
	if r.Status != http.StatusOK || m.class == notFound {
		return provider.Result{}, fmt.Errorf("Airtel answered %d with status %q and code %q", r.Status, wire.Truncate(status, maxCode), wire.Truncate(code, maxCode))
	}
	contradicted := errors.New("the transaction's status and the code beside it contradict each other")
	switch status {
	case "":
		return provider.Result{}, fmt.Errorf("the answer has no status, and code %q", wire.Truncate(code, maxCode))
	case "TIP", "TA", "TI":
		// In progress; ambiguous, which Airtel resolves by itself or by hand; pending,
		// which only integrators have seen. All of them are open.
		return provider.Result{Outcome: provider.Open}, nil
	case "TS":
		if m.class == failedCode || m.class == rejectedCode || a.failed() {
			return provider.Result{}, contradicted
		}
		return p.success(&a, q), nil
	case "TF", "TE":
		if m.class == succeeded && code != "ESB000010" || m.class == inProcess || m.class == ambiguous {
			return provider.Result{}, contradicted
		}
		return p.failure(&a, status, code, m), nil
	}
	return provider.Result{Outcome: provider.Unrecognised, Code: wire.Truncate(status, maxCode)}, nil
}

// success returns the result of a success. Airtel names no amount.
func (p *service) success(a *answer, q provider.Query) provider.Result {
	result := provider.Result{Outcome: provider.Success, Receipt: wire.Truncate(a.Data.Receipt, maxCode)}
	if result.Receipt == "" {
		result.Receipt = wire.Truncate(a.Data.ReferenceID, maxCode)
	}
	switch id := a.Data.ID; {
	case id == "":
	case parseTransactionID(id) == q.Reference:
		result.Reference = q.Reference.String()
	default:
		result.Reference = wire.Truncate(id, maxCode)
	}
	return result
}

// failure returns why a transaction failed or expired.
func (p *service) failure(a *answer, status, code string, m codeMeaning) provider.Result {
	result := provider.Result{Outcome: provider.Failed, Reason: till.Unspecified, Code: code, Message: a.message()}
	if code == "" || code == "ESB000010" {
		result.Code = status
	}
	if m.reason != "" {
		result.Reason, result.Retryable = p.reason(m.reason), m.retryable
		result.OurFault = p.ourFault(result.Reason, code, m)
	}
	// This code has three meanings, and only its message says which.
	if code == "DP00800001005" && strings.Contains(strings.ToLower(a.Data.Message+" "+string(a.Status.Message)), "msisdn not found") {
		result.Reason, result.Retryable = p.reason(till.PayerNotFound), false
	}
	if status == "TE" {
		result.Reason, result.Retryable = p.reason(till.CustomerTimeout), true
		if !p.payout {
			result.Outcome = provider.Expired
		}
	}
	return result
}
