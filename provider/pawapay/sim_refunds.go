package pawapay

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"till/provider/simulator"
	"till/provider/wire"
)

// simRefund is what pawaPay reads of a refund: no recipient, who is the deposit's payer.
type simRefund struct {
	RefundID          *string           `json:"refundId"`
	DepositID         *string           `json:"depositId"`
	Amount            *string           `json:"amount"`
	Currency          *string           `json:"currency"`
	ClientReferenceID string            `json:"clientReferenceId"`
	Metadata          []json.RawMessage `json:"metadata"`
}

// simRefunds are the refunds of each deposit. One refund is decided after the other.
type simRefunds struct {
	mu sync.Mutex
	of map[string][]string // the refunds' ids by deposit
}

// failedByHand is the kind of the entry that says that a refund or payout was failed by a
// person while it was enqueued. Its reference is theirs.
const failedByHand = "failed by hand"

// readRefunds reads the refunds of an earlier run.
func (s *Simulator) readRefunds() {
	s.refunds.of = map[string][]string{}
	for _, e := range s.book.Entries() {
		if e.Kind == simKind(&refunds) {
			s.noteRefund(&e)
		}
	}
}

func (s *Simulator) noteRefund(e *simulator.Entry) {
	var of simData
	json.Unmarshal([]byte(e.Data), &of)
	s.refunds.of[of.Deposit] = append(s.refunds.of[of.Deposit], e.Reference)
}

// refund takes a refund.
func (s *Simulator) refund(w http.ResponseWriter, r *http.Request) {
	var q simRefund
	if !s.readInitiation(w, r, &q) {
		return
	}
	for _, m := range []struct {
		value *string
		name  string
	}{{q.RefundID, "refundId"}, {q.DepositID, "depositId"}} {
		if m.value == nil {
			simError(w, http.StatusBadRequest, "MISSING_PARAMETER", "The parameter '"+m.name+"' is missing.")
			return
		}
		if !simUUID.MatchString(*m.value) {
			simError(w, http.StatusBadRequest, "INVALID_PARAMETER", "The parameter '"+m.name+"' is not valid.")
			return
		}
	}
	if (q.Amount == nil) != (q.Currency == nil) {
		simError(w, http.StatusBadRequest, "MISSING_PARAMETER", "The parameters 'amount' and 'currency' go together.")
		return
	}
	if q.Amount != nil && (!simAmount.MatchString(*q.Amount) || len(*q.Amount) > 23) || len(q.Metadata) > 10 {
		simError(w, http.StatusBadRequest, "INVALID_PARAMETER", "The parameter 'amount' is not valid.")
		return
	}
	s.refunds.mu.Lock()
	defer s.refunds.mu.Unlock()
	answer := simInitiated{RefundID: *q.RefundID, Status: "ACCEPTED", Created: s.book.Now().UTC().Truncate(time.Second).Format(time.RFC3339)}
	if old, found := s.book.Find(simKind(&refunds), *q.RefundID); found {
		answer.Status, answer.Created = "DUPLICATE_IGNORED", old.At.UTC().Format(time.RFC3339)
	} else if e, reason := s.refundEntry(&q); reason != nil {
		answer.Status, answer.Created, answer.FailureReason = "REJECTED", "", reason
	} else if _, _, err := s.book.Add(e); err != nil {
		simError(w, http.StatusInternalServerError, "UNKNOWN_ERROR", err.Error())
		return
	} else {
		s.noteRefund(&e)
		s.sendCallback(&refunds, e.Reference, s.c.Decide)
	}
	simJSON(w, http.StatusOK, &answer)
}

// refundEntry returns the entry of a refund, or why it is rejected.
func (s *Simulator) refundEntry(q *simRefund) (e simulator.Entry, reason *simReason) {
	deposit, found := s.book.Find(simKind(&deposits), *q.DepositID)
	if !found {
		return e, &simReason{"NOT_FOUND", "The deposit was not found."}
	}
	if state, _ := deposit.StateAt(s.book.Now()); state != simulator.Success {
		return e, &simReason{"INVALID_STATE", "The deposit is not completed."}
	}
	var of simData
	json.Unmarshal([]byte(deposit.Data), &of)
	left, open := s.leftOf(&deposit)
	amount := left
	if q.Amount != nil {
		amount = simUnits(*q.Amount)
	}
	switch market := s.market(of.Provider, &refunds); {
	case market.Status == simLacking:
		return e, &simReason{"INVALID_PROVIDER", "The provider is not active for the account."}
	case market.Status == simClosed:
		return e, &simReason{"PROVIDER_TEMPORARILY_UNAVAILABLE", "The provider does not take requests now."}
	case open:
		return e, &simReason{"REFUND_IN_PROGRESS", "Another refund of the deposit is in progress."}
	case left == 0:
		return e, &simReason{"DEPOSIT_ALREADY_REFUNDED", "The deposit has been refunded in full."}
	case q.Currency != nil && *q.Currency != deposit.Currency:
		return e, &simReason{"INVALID_CURRENCY", "The currency is not that of the deposit."}
	case amount <= 0:
		return e, &simReason{"INVALID_AMOUNT", "The amount is not valid."}
	case amount > left:
		return e, &simReason{"AMOUNT_TOO_LARGE", "The amount is larger than what is left of the deposit."}
	}
	text, _ := json.Marshal(simData{Deposit: deposit.Reference, Provider: of.Provider, Reference: q.ClientReferenceID, Metadata: q.Metadata})
	plan := s.planOf(deposit.Phone, s.delayed(of.Provider, &refunds), &refunds)
	if s.c.OutOfFunds {
		plan = simulator.Plan{After: s.c.Decide, State: simulator.Failed, Code: "PAWAPAY_WALLET_OUT_OF_FUNDS"}
	}
	return simulator.Entry{Kind: simKind(&refunds), Reference: *q.RefundID, Handle: *q.RefundID + " " + refunds.id, External: q.ClientReferenceID, Phone: deposit.Phone,
		Amount: wire.FormatMinor(amount, simDigits), Currency: deposit.Currency, Data: string(text), Plan: plan}, nil
}

// leftOf returns what is left of a deposit, and whether a refund of it is open.
func (s *Simulator) leftOf(deposit *simulator.Entry) (left int64, open bool) {
	left = simUnits(deposit.Amount)
	for _, id := range s.refunds.of[deposit.Reference] {
		e, _ := s.book.Find(simKind(&refunds), id)
		switch state, _ := s.stateOf(&e); state {
		case simulator.Success:
			left -= simUnits(e.Amount)
		case simulator.Open:
			open = true
		}
	}
	return left, open
}

// simDigits is how many decimals an amount of pawaPay's may have.
const simDigits = 4

func simUnits(amount string) int64 {
	n, _ := wire.ParseMinor(amount, simDigits)
	return n
}

// stateOf returns the state of a request now. One that was failed by hand never moves money.
func (s *Simulator) stateOf(e *simulator.Entry) (simulator.State, string) {
	if _, failed := s.book.Find(failedByHand, e.Reference); failed {
		return simulator.Failed, "MANUALLY_CANCELLED"
	}
	return e.StateAt(s.book.Now())
}

// failEnqueued fails a payout or refund that waits for its provider.
func (s *Simulator) failEnqueued(w http.ResponseWriter, r *http.Request, k *serviceKind) {
	id := r.PathValue("id")
	answer := map[string]any{k.id: id, "status": "ACCEPTED"}
	e, found := s.book.Find(simKind(k), id)
	var data simData
	json.Unmarshal([]byte(e.Data), &data)
	switch state, _ := s.stateOf(&e); {
	case !found:
		answer["status"], answer["failureReason"] = "REJECTED", simReason{"NOT_FOUND", "There is none of that id."}
	case state != simulator.Open || !s.delayed(data.Provider, k):
		answer["status"], answer["failureReason"] = "REJECTED", simReason{"INVALID_STATE", "It is not enqueued."}
	default:
		if _, _, err := s.book.Add(simulator.Entry{Kind: failedByHand, Reference: id}); err != nil {
			simError(w, http.StatusInternalServerError, "UNKNOWN_ERROR", err.Error())
			return
		}
		s.sendCallback(k, id, 0)
	}
	simJSON(w, http.StatusOK, answer)
}
