package mpesa

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"

	"till/provider/simulator"
)

// simNotFound is how the simulator says that there is no such payout. The real
// code is not published; see Config.NotFoundCodes.
const simNotFound = "SIM_NOT_FOUND"

// simFailed is its word for a payout that failed: one of the published ones.
const simFailed = "Declined"

// Certificate is the public key for which an initiator's password is
// encrypted, in PEM.
func (s *Simulator) Certificate() string {
	der, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	if err != nil {
		return ""
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// validInitiator reports whether a request's initiator is ours. The password itself
// is taken, too, so that nobody needs the certificate of a simulator.
func (s *Simulator) validInitiator(name, credential string) bool {
	if credential == s.c.InitiatorPassword {
		return name == s.c.Initiator
	}
	s.mu.Lock()
	opened := credential == s.openedCredential && credential != ""
	s.mu.Unlock()
	if opened {
		return name == s.c.Initiator
	}
	sealed, err := base64.StdEncoding.DecodeString(credential)
	if err != nil {
		return false
	}
	//lint:ignore SA1019 Daraja takes nothing else
	password, err := rsa.DecryptPKCS1v15(rand.Reader, s.key, sealed)
	if err != nil || string(password) != s.c.InitiatorPassword {
		return false
	}
	s.mu.Lock()
	s.openedCredential = credential
	s.mu.Unlock()
	return name == s.c.Initiator
}

func (s *Simulator) conversation() string {
	return "AG_" + s.book.Now().In(nairobi).Format("20060102") + "_" + simHex(10)
}

// payout takes a B2C payment.
func (s *Simulator) payout(w http.ResponseWriter, q simRequest) {
	reference, phone, amount := q.text("OriginatorConversationID"), q.text("PartyB"), q.text("Amount")
	bad := ""
	switch command := q.text("CommandID"); {
	case reference == "":
		bad = "OriginatorConversationID"
	case command != "BusinessPayment" && command != "SalaryPayment" && command != "PromotionPayment":
		bad = "CommandID"
	case !simAmount.MatchString(amount):
		bad = "Amount"
	case q.text("PartyA") != s.c.PayoutShortCode:
		bad = "PartyA"
	case !simPhone.MatchString(phone):
		bad = "PartyB"
	case len(q.text("Remarks")) < 2 || len(q.text("Remarks")) > 100:
		bad = "Remarks"
	case !simCallable(q.text("ResultURL")):
		bad = "ResultURL"
	case !simCallable(q.text("QueueTimeOutURL")):
		bad = "QueueTimeOutURL"
	}
	if bad != "" {
		simError(w, 400, "400.002.02", "Bad Request - Invalid "+bad)
		return
	}
	plan := s.plan(phone, payoutCodes)
	if !s.validInitiator(q.text("InitiatorName"), q.text("SecurityCredential")) {
		plan = simulator.Plan{After: s.c.Decide, State: simulator.Failed, Code: "2001"}
	}
	e, fresh, err := s.book.Add(simulator.Entry{Kind: "payout", Reference: reference, Handle: s.conversation(), External: q.text("Occassion"),
		Phone: phone, Amount: amount, Currency: currency, Callback: q.text("ResultURL"), Receipt: rand.Text()[:10], Plan: plan})
	switch {
	case err != nil:
		simError(w, 500, "500.003.02", "System is busy. Please try again in few minutes.")
		return
	case !fresh:
		simError(w, 500, "500.002.1001", "Duplicate OriginatorConversationID.")
		return
	}
	if plan.State != simulator.Open {
		s.callbacks.Send(plan.After, 0, func() *http.Request {
			body := s.payoutBody(&e)
			if body == nil {
				return nil
			}
			return simulator.Post(http.MethodPost, e.Callback, body)
		})
	}
	simJSON(w, 200, map[string]string{"ConversationID": e.Handle, "OriginatorConversationID": reference, "ResponseCode": "0",
		"ResponseDescription": "Accept the service request successfully."})
}

type simResult struct {
	ResultType               int
	ResultCode               any
	ResultDesc               string
	OriginatorConversationID string
	ConversationID           string
	TransactionID            string
	ResultParameters         *simParameters `json:",omitempty"`
}

type simParameters struct{ ResultParameter []simParameter }

type simParameter struct {
	Key   string
	Value any `json:",omitempty"`
}

func (r *simResult) body() []byte {
	body, _ := json.Marshal(map[string]any{"Result": r})
	return body
}

// payoutBody is the callback of a payout, nil before its end.
func (s *Simulator) payoutBody(e *simulator.Entry) []byte {
	state, code := e.StateAt(s.book.Now())
	r := &simResult{ResultCode: json.Number("0"), ResultDesc: simDesc("0"), OriginatorConversationID: e.Reference, ConversationID: e.Handle, TransactionID: e.Receipt}
	switch state {
	case simulator.Open:
		return nil
	case simulator.Success:
		r.ResultParameters = &simParameters{[]simParameter{{"TransactionAmount", json.Number(e.Amount)}, {"TransactionReceipt", e.Receipt},
			{"ReceiverPartyPublicName", e.Phone + " - Simulated"}, {"B2CRecipientIsRegisteredCustomer", "Y"}}}
	default:
		r.ResultCode, r.ResultDesc = simCode(code), simDesc(code)
	}
	return r.body()
}

// status takes a question about a payout, and answers it later.
func (s *Simulator) status(w http.ResponseWriter, q simRequest) {
	if q.text("CommandID") != "TransactionStatusQuery" || q.text("IdentifierType") != "4" || q.text("PartyA") != s.c.PayoutShortCode ||
		!simCallable(q.text("ResultURL")) || !simCallable(q.text("QueueTimeOutURL")) || q.text("OriginalConversationID")+q.text("TransactionID") == "" {
		simError(w, 400, "400.003.02", "Bad Request")
		return
	}
	originator, conversation := simHex(4)+"-"+simHex(4)+"-1", s.conversation()
	s.callbacks.Send(s.c.Answer, 0, func() *http.Request {
		r := &simResult{ResultCode: json.Number("0"), ResultDesc: simDesc("0"), OriginatorConversationID: originator, ConversationID: conversation, TransactionID: rand.Text()[:10]}
		s.writeStatus(q, r)
		return simulator.Post(http.MethodPost, q.text("ResultURL"), r.body())
	})
	simJSON(w, 200, map[string]string{"OriginatorConversationID": originator, "ConversationID": conversation, "ResponseCode": "0",
		"ResponseDescription": "Accept the service request successfully."})
}

// writeStatus writes the state of a payout into an answer.
func (s *Simulator) writeStatus(q simRequest, r *simResult) {
	if !s.validInitiator(q.text("Initiator"), q.text("SecurityCredential")) {
		r.ResultCode, r.ResultDesc = json.Number("2001"), simDesc("2001")
		return
	}
	e, found := s.book.Find("payout", q.text("OriginalConversationID"))
	state, code := e.StateAt(s.book.Now())
	if !found || s.c.ForgetsFailures && state == simulator.Failed {
		r.ResultCode, r.ResultDesc = simNotFound, "The transaction does not exist."
		return
	}
	status := map[simulator.State]string{simulator.Open: "Authorized", simulator.Success: "Completed", simulator.Failed: simFailed}[state]
	r.ResultParameters = &simParameters{[]simParameter{
		{"ReceiptNo", e.Receipt}, {"Amount", json.Number(e.Amount + ".00")}, {"TransactionStatus", status}, {"ReasonType", "Business Payment to Customer via API"},
		{"TransactionReason", code}, {"OriginatorConversationID", e.Reference}, {"ConversationID", e.Handle},
		{"InitiatedTime", json.Number(e.At.In(nairobi).Format("20060102150405"))}, {"DebitPartyCharges", nil}, {"CreditPartyName", e.Phone + " - Simulated"},
	}}
}

// simDesc is what Daraja says beside a result code.
func simDesc(code string) string {
	switch code {
	case "0":
		return "The service request is processed successfully."
	case "1":
		return "The balance is insufficient for the transaction."
	case "1032":
		return "Request cancelled by user"
	case "1037":
		return "DS timeout user cannot be reached"
	case "11":
		return "The DebitParty is in an invalid state."
	case "21":
		return "The initiator is not allowed to initiate this request."
	case "2001":
		return "The initiator information is invalid."
	case "2006":
		return "Declined due to account rule: The account status does not allow this transaction."
	case "SFC_IC0003":
		return "The operator does not exist."
	}
	return "The transaction has failed."
}
