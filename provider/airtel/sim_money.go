package airtel

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"till/provider/simulator"
)

func simDecimal(n int64) string { return strconv.FormatInt(n, 10) }

// story is what happens for a number. Airtel documents no test numbers: these
// are the simulator's own, by the last four digits, and mean what they mean in
// Till's sandbox where both have them. Any other number succeeds.
type scenario struct {
	state           simulator.State
	status          string // TF, TE; "" is TIP for ever if the state is open
	payment, payout string // the code beside it
	late, silent    bool
	answer          string // what the request itself is answered with, after it was taken
}

var scenarios = map[string]scenario{
	"0002": {simulator.Failed, "TF", "DP00800001008", "DP00900001005", false, false, ""},
	"0003": {simulator.Expired, "TE", "DP00800001029", "DP00900001005", false, false, ""},
	"0004": {simulator.Failed, "TF", "DP00800001007", "DP00900001007", false, false, ""},
	"0005": {simulator.Failed, "TF", "DP00800001010", "DP00900001012", false, false, ""},
	"0006": {simulator.Failed, "TF", "DP00800001003", "DP00900001003", false, false, ""},
	"0007": {simulator.Failed, "TF", "DP00800001002", "DP00900001005", false, false, ""},
	"0008": {simulator.Failed, "TF", "DP00800001005", "DP00900001010", false, false, ""},
	"0013": {simulator.Expired, "TE", "DP00800001029", "DP00900001005", true, true, ""},
	"0014": {simulator.Open, "TA", "DP00800001000", "DP00900001000", false, false, ""}, // ambiguous for ever
	"0017": {simulator.Success, "", "", "", false, true, ""},
	"0021": {simulator.Open, "TIP", "DP00800001006", "DP00900001006", false, false, ""}, // in progress for ever
	"0022": {simulator.Success, "", "", "", false, false, "408"},
	"0023": {simulator.Success, "", "", "", false, false, "ROUTER117"},
	"0024": {simulator.Success, "", "", "", false, false, "ESB000001"},
}

// simLateBy is how long after its end late money comes.
const simLateBy = 2 * time.Second

func scenarioOf(phone string) scenario {
	if s, ok := scenarios[phone[max(0, len(phone)-4):]]; ok {
		return s
	}
	return scenario{state: simulator.Success}
}

func (s *Simulator) plan(st scenario, payout bool) simulator.Plan {
	p := simulator.Plan{After: s.c.Decide, State: st.state, Code: st.payment, Silent: st.silent}
	if payout {
		p.Code = st.payout
		if s.c.SyncPayouts && st.state != simulator.Open {
			p.After = 0
		}
	}
	if st.late {
		p.Late = simLateBy
	}
	return s.injector.Plan(p, simLateBy)
}

// validSignature reports whether a request has the signature that it must have.
func (s *Simulator) validSignature(r *http.Request, body []byte) bool {
	sign, sealed := r.Header.Get("X-Signature"), r.Header.Get("X-Key")
	if sign == "" && sealed == "" {
		return !s.c.SignedOnly
	}
	b, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return false
	}
	//lint:ignore SA1019 Airtel takes nothing else
	pair, err := rsa.DecryptPKCS1v15(nil, s.key, b)
	if err != nil {
		return false
	}
	k, v, _ := strings.Cut(string(pair), ":")
	key, err1 := base64.StdEncoding.DecodeString(k)
	iv, err2 := base64.StdEncoding.DecodeString(v)
	text, err3 := base64.StdEncoding.DecodeString(sign)
	if err1 != nil || err2 != nil || err3 != nil || len(iv) != aes.BlockSize || len(text) == 0 || len(text)%aes.BlockSize != 0 {
		return false
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return false
	}
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(text, text)
	pad := int(text[len(text)-1])
	return pad <= len(text) && string(text[:len(text)-pad]) == string(body)
}

// invalidNumber says what is wrong with a number, "" if nothing: it must have no
// calling code, the country's length, and the zero where there is one.
func (s *Simulator) invalidNumber(msisdn string) string {
	switch {
	case len(msisdn) != s.c.NumberLength || strings.Trim(msisdn, "0123456789") != "":
		return "Invalid Msisdn Length. Msisdn Length should be " + simDecimal(int64(s.c.NumberLength))
	case s.c.ZeroFirst && msisdn[0] != '0':
		return "Msisdn Length should be " + simDecimal(int64(s.c.NumberLength)) + " and should start with 0"
	}
	return ""
}

func simValidAmount(n json.Number) bool {
	f, err := n.Float64()
	return err == nil && f > 0
}

// push takes a collection: USSD push.
func (s *Simulator) push(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var p push
	if err != nil || json.Unmarshal(body, &p) != nil {
		simReject(w, "", "ESB000008", "Invalid request body")
		return
	}
	switch fault := s.invalidNumber(p.Subscriber.MSISDN); {
	case !s.validSignature(r, body):
		simReject(w, "DP00800001026", "ESB000008", "x-signature and payload did not match")
	case p.Transaction.ID == "" || p.Reference == "":
		simReject(w, "", "ESB000008", "Transaction id is missing")
	case fault != "":
		simReject(w, "", "ESB000033", fault)
	case p.Transaction.Currency != s.c.Currency || p.Subscriber.Currency != s.c.Currency:
		simReject(w, "", "ESB000035", "Invalid currency")
	case !simValidAmount(p.Transaction.Amount):
		simReject(w, "DP00800001004", "ESB000008", "Invalid amount")
	default:
		s.record(w, simulator.Entry{Kind: "payment", Reference: p.Transaction.ID, External: p.Reference, Phone: p.Subscriber.MSISDN,
			Amount: p.Transaction.Amount.String(), Currency: s.c.Currency, Receipt: simulator.Digits(12)})
	}
}

// disburse takes a payout.
func (s *Simulator) disburse(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var d disbursement
	if err != nil || json.Unmarshal(body, &d) != nil {
		simReject(w, "DP00900001013", "ESB000008", "Invalid request body")
		return
	}
	sealed, err := base64.StdEncoding.DecodeString(d.PIN)
	//lint:ignore SA1019 Airtel takes nothing else
	pin, err2 := rsa.DecryptPKCS1v15(nil, s.key, sealed)
	switch fault := s.invalidNumber(d.Payee.MSISDN); {
	case !s.validSignature(r, body):
		simReject(w, "DP00900001018", "ESB000008", "x-signature and payload did not match")
	case d.PIN == "":
		simReject(w, "DP00900001013", "ESB000008", "PIN is missing")
	case err != nil || err2 != nil:
		simRouterError(w, http.StatusBadRequest, "ROUTER116", "Incorrect encrypted PIN")
	case string(pin) != s.c.PIN:
		simRouterError(w, http.StatusBadRequest, "ROUTER115", "Incorrect PIN")
	case fault != "":
		simReject(w, "DP00900001013", "521002", fault)
	case !simValidAmount(d.Transaction.Amount):
		simReject(w, "DP00900001004", "ESB000008", "Invalid amount")
	case scenarioOf(d.Payee.MSISDN).payout == "DP00900001007":
		simReject(w, "DP00900001007", "ESB000011", "Insufficient funds")
	default:
		s.record(w, simulator.Entry{Kind: "payout", Reference: d.Transaction.ID, External: d.Reference, Phone: d.Payee.MSISDN,
			Amount: d.Transaction.Amount.String(), Currency: s.c.Currency, Receipt: simulator.Digits(12)})
	}
}

// record writes a request down and answers it.
func (s *Simulator) record(w http.ResponseWriter, e simulator.Entry) {
	payout := e.Kind == "payout"
	st := scenarioOf(e.Phone)
	e.Plan = s.plan(st, payout)
	e, fresh, err := s.book.Add(e)
	switch {
	case err != nil:
		simJSON(w, http.StatusServiceUnavailable, map[string]string{"error": "service_unavailable"})
		return
	case !fresh && payout:
		simReject(w, "DP00900001011", "ESB000041", "Duplicate exttRID")
		return
	case !fresh:
		simReject(w, "", "ESB000041", "External transaction ID already exists")
		return
	}
	if s.c.CallbackURL != "" && !e.Plan.Silent && e.Plan.State != simulator.Open {
		s.callbacks.Send(e.Plan.After, 0, func() *http.Request { return simulator.Post(http.MethodPost, s.c.CallbackURL, s.callback(&e)) })
	}
	switch st.answer {
	case "408":
		simJSON(w, http.StatusRequestTimeout, map[string]string{"error": "request_timeout"})
		return
	case "ROUTER117":
		simRouterError(w, http.StatusBadRequest, "ROUTER117", "Request timeout")
		return
	case "ESB000001":
		simReject(w, "", "ESB000001", "Something went wrong")
		return
	}
	if !payout {
		// SUCCESS before anybody has typed a PIN.
		simEnvelope(w, http.StatusOK, map[string]any{"transaction": map[string]string{"id": e.Reference, "status": "SUCCESS"}},
			"DP00800001006", "ESB000010", "SUCCESS", true)
		return
	}
	status, code := s.statusOf(&e)
	simEnvelope(w, http.StatusOK, map[string]any{"transaction": map[string]string{"reference_id": e.Receipt, "airtel_money_id": "disburs-" + e.Receipt,
		"id": e.Reference, "status": status}}, code, "ESB000010", "SUCCESS", status != "TF")
}

// statusOf is Airtel's word for the state of a request, and the code beside it.
func (s *Simulator) statusOf(e *simulator.Entry) (status, code string) {
	family := "DP008"
	if e.Kind == "payout" {
		family = "DP009"
	}
	st := scenarioOf(e.Phone)
	switch state, c := e.StateAt(s.book.Now()); {
	case state == simulator.Success:
		return "TS", family + "00001001"
	case state == simulator.Open && st.state == simulator.Open && e.Plan.Code != "" && !s.book.Now().Before(e.At.Add(e.Plan.After)):
		return st.status, e.Plan.Code
	case state == simulator.Open:
		return "TIP", family + "00001006"
	default:
		return st.status, c
	}
}

// enquire answers with the state of a request.
func (s *Simulator) enquire(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		e, ok := s.book.Find(kind, id)
		if !ok {
			code := "DP00800001025"
			if kind == "payout" {
				code = "DP00900001015"
			}
			simReject(w, code, "ESB000045", "Transaction not found")
			return
		}
		// A hyphen in the id is seen to break the enquiry, not the request.
		if strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || len(id) < 4 || len(id) > 64 {
			simReject(w, "DP00800001005", "ESB000011", "Transaction ID is invalid")
			return
		}
		status, code := s.statusOf(&e)
		t := map[string]string{"id": e.Reference, "message": simMessage(status), "status": status}
		if status == "TS" {
			t["airtel_money_id"] = e.Receipt
		}
		simEnvelope(w, http.StatusOK, map[string]any{"transaction": t}, code, "ESB000010", simMessage(status), status == "TS" || status == "TIP")
	}
}

func simMessage(status string) string {
	switch status {
	case "TS":
		return "Your transaction has been successfully processed"
	case "TF", "TE":
		return "Your transaction was not processed"
	}
	return "Your transaction is being processed"
}

// callback is the body of a callback. The member is status_code here and
// status in an enquiry.
func (s *Simulator) callback(e *simulator.Entry) []byte {
	status, _ := s.statusOf(e)
	t := struct {
		ID      string `json:"id"`
		Message string `json:"message"`
		Status  string `json:"status_code"`
		Receipt string `json:"airtel_money_id,omitempty"`
	}{ID: e.Reference, Message: simMessage(status), Status: status}
	if status == "TS" {
		t.Receipt = e.Receipt
	}
	inner, _ := json.Marshal(t) // strings always marshal
	text := `{"transaction":` + string(inner)
	if s.c.CallbackKey != "" {
		hashed := []byte(text + "}")
		if s.c.HashInner {
			hashed = inner
		}
		text += `,"hash":"` + base64.StdEncoding.EncodeToString(mac(s.c.CallbackKey, hashed)) + `"`
	}
	return []byte(text + "}")
}
