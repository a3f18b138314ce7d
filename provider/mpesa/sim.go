package mpesa

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"till/provider/simulator"
)

// SimConfig is what a simulated Daraja is made of. The zero value works, with
// the short code of Daraja's own sandbox.
type SimConfig struct {
	ConsumerKey, ConsumerSecret string // "" means "simulated", both
	ShortCode, Passkey          string // "" means 174379 and "simulated"
	PayoutShortCode             string // "" means 600000
	Initiator                   string // "" means "simulated"
	InitiatorPassword           string // "" means "simulated"; Certificate is the key to it

	Path   string           // the file of its book; "" means memory
	Now    func() time.Time // its clock; nil means the machine's
	Decide time.Duration    // how long customers take; 0 means two seconds
	Answer time.Duration    // how long the answer to a status query takes
	// TokenLife is how long a token is good; 0 means 3599 s.
	TokenLife time.Duration
	// ForgetsFailures answers a question about a payout that failed as if there
	// had been none. Which of the two Daraja does is not documented.
	ForgetsFailures bool
	// Repeats takes the same amount from the same customer again at once. The
	// real one refuses that for two minutes.
	Repeats bool
	Faults  simulator.Faults
	// Dial replaces the dialer of callbacks, for a network in memory; nil means the system's.
	Dial simulator.Dial
}

// SimSettings is [connection.mpesa] for a simulator without other settings.
const SimSettings = `consumer_key_env = "SIM_MPESA_SECRET"
consumer_secret_env = "SIM_MPESA_SECRET"
short_code = "174379"
passkey_env = "SIM_MPESA_SECRET"
payout_short_code = "600000"
initiator = "simulated"
security_credential_env = "SIM_MPESA_SECRET"
not_found_codes = ["` + simNotFound + `"]
`

// SimSecrets are the credentials of SimSettings.
var SimSecrets = map[string]string{"SIM_MPESA_SECRET": "simulated"}

// Simulator plays Daraja, as an http.Handler. Daraja's sandbox has one number,
// 254708374149, which pays. Of any other the last four digits are the result
// code that it ends with, if there is such a code: 0001 has no money, 1032
// cancels, 1037 does not answer; 1003 stands for SFC_IC0003, 0129 never decides.
type Simulator struct {
	c         SimConfig
	book      *simulator.Book
	injector  *simulator.FaultInjector
	callbacks *simulator.CallbackSender
	handler   http.Handler
	key       *rsa.PrivateKey

	mu       sync.Mutex
	token    string
	until    time.Time
	lastPush map[string]string // phone: the handle of its latest push
	// opened is the latest security credential that held the password: opening
	// one takes a millisecond, and callers use the same for long.
	openedCredential string
}

// simRepeat is how long the same amount is refused.
const simRepeat = 2 * time.Minute

// simKey is Safaricom's, so to say: one for all simulators of a process.
var simKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// NewSimulator starts a simulated Daraja. Close it.
func NewSimulator(c SimConfig) (*Simulator, error) {
	for _, d := range []struct {
		field     *string
		otherwise string
	}{{&c.ConsumerKey, "simulated"}, {&c.ConsumerSecret, "simulated"}, {&c.ShortCode, "174379"}, {&c.Passkey, "simulated"},
		{&c.PayoutShortCode, "600000"}, {&c.Initiator, "simulated"}, {&c.InitiatorPassword, "simulated"}} {
		if *d.field == "" {
			*d.field = d.otherwise
		}
	}
	if c.Decide <= 0 {
		c.Decide = 2 * time.Second
	}
	if c.TokenLife <= 0 {
		c.TokenLife = 3599 * time.Second
	}
	s := &Simulator{c: c, injector: simulator.NewFaultInjector(c.Faults), lastPush: map[string]string{}}
	var err error
	if s.key, err = simKey(); err != nil {
		return nil, err
	}
	if s.book, err = simulator.OpenBook(c.Path, c.Now); err != nil {
		return nil, err
	}
	s.callbacks = simulator.NewCallbackSender(s.injector, c.Dial)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /oauth/v1/generate", s.generate)
	mux.HandleFunc("POST /mpesa/stkpush/v1/processrequest", s.authenticated(s.push))
	mux.HandleFunc("POST /mpesa/stkpushquery/v1/query", s.authenticated(s.query))
	mux.HandleFunc("POST /mpesa/b2c/v3/paymentrequest", s.authenticated(s.payout))
	mux.HandleFunc("POST "+simStatusPath, s.authenticated(s.status))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { simError(w, 404, "404.001.01", "Resource not found") })
	s.handler = s.injector.Wrap(mux, func(r *http.Request) bool { return r.URL.Path == "/oauth/v1/generate" })
	return s, nil
}

// ServeHTTP answers as Daraja would.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Book is what it remembers.
func (s *Simulator) Book() *simulator.Book { return s.book }

// Close ends the callbacks and closes the book.
func (s *Simulator) Close() error {
	s.callbacks.Stop()
	return s.book.Close()
}

// generate gives a token, and ends the one before.
func (s *Simulator) generate(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	switch {
	case user != s.c.ConsumerKey || password != s.c.ConsumerSecret:
		simError(w, 400, "400.008.01", "Invalid Authentication passed")
		return
	case r.URL.Query().Get("grant_type") != "client_credentials":
		simError(w, 400, "400.008.02", "Invalid grant type passed")
		return
	}
	s.mu.Lock()
	s.token, s.until = rand.Text(), s.book.Now().Add(s.c.TokenLife)
	token := s.token
	s.mu.Unlock()
	simJSON(w, 200, map[string]string{"access_token": token, "expires_in": fmt.Sprint(int(s.c.TokenLife / time.Second))})
}

// forgetToken ends the token that is out.
func (s *Simulator) forgetToken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = ""
}

const maxSimBody = 64 << 10

// simStatusPath is where a dead token has a code of its own.
const simStatusPath = "/mpesa/transactionstatus/v1/query"

// authenticated reads a request of a caller with the token.
func (s *Simulator) authenticated(next func(w http.ResponseWriter, q simRequest)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		good := s.token != "" && r.Header.Get("Authorization") == "Bearer "+s.token && s.book.Now().Before(s.until)
		s.mu.Unlock()
		if !good {
			if r.URL.Path == simStatusPath {
				simError(w, 400, "400.003.01", "Invalid Access Token")
			} else {
				simError(w, 404, "404.001.03", "Invalid Access Token")
			}
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSimBody))
		q := simRequest{}
		if err == nil {
			d := json.NewDecoder(strings.NewReader(string(body)))
			d.UseNumber()
			err = d.Decode(&q)
		}
		if err != nil {
			simError(w, 400, "400.002.05", "Invalid Request Payload")
			return
		}
		next(w, q)
	}
}

// simRequest is any request: Daraja takes numbers and strings alike.
type simRequest map[string]any

func (q simRequest) text(name string) string {
	switch v := q[name].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

func simError(w http.ResponseWriter, status int, code, message string) {
	simJSON(w, status, map[string]string{"requestId": simHex(8), "errorCode": code, "errorMessage": message})
}

func simJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body, _ := json.Marshal(v)
	w.Write(body)
}

func simHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// What Daraja demands of a request.
var (
	simAmount = regexp.MustCompile(`^[1-9][0-9]{0,5}$`)
	simPhone  = regexp.MustCompile(`^254[17][0-9]{8}$`)
)

// simCallable reports whether Daraja would call an address; the simulator also calls
// this machine.
func simCallable(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// validPassword reports whether a request's password is right.
func (s *Simulator) validPassword(q simRequest) bool {
	want := base64.StdEncoding.EncodeToString([]byte(s.c.ShortCode + s.c.Passkey + q.text("Timestamp")))
	return len(q.text("Timestamp")) == 14 && q.text("Password") == want
}

// push takes an STK push.
func (s *Simulator) push(w http.ResponseWriter, q simRequest) {
	phone, amount := q.text("PhoneNumber"), q.text("Amount")
	bad := ""
	switch {
	case q.text("BusinessShortCode") != s.c.ShortCode:
		simError(w, 500, "500.001.1001", "Merchant does not exist")
		return
	case !s.validPassword(q):
		simError(w, 500, "500.001.1001", "Wrong credentials")
		return
	case q.text("TransactionType") != payBill && q.text("TransactionType") != buyGoods:
		bad = "TransactionType"
	case !simAmount.MatchString(amount):
		bad = "Amount"
	case !simPhone.MatchString(phone) || q.text("PartyA") != phone:
		bad = "PhoneNumber"
	case !simCallable(q.text("CallBackURL")):
		bad = "CallBackURL"
	case q.text("AccountReference") == "" || len(q.text("AccountReference")) > 12:
		bad = "AccountReference"
	case q.text("TransactionDesc") == "" || len(q.text("TransactionDesc")) > 13:
		bad = "TransactionDesc"
	}
	if bad != "" {
		simError(w, 400, "400.002.02", "Bad Request - Invalid "+bad)
		return
	}
	plan := s.plan(phone, pushCodes)
	now := s.book.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, found := s.book.FindHandle(s.lastPush[phone]); found && !s.c.Repeats && now.Sub(before.At) < simRepeat {
		switch state, _ := before.StateAt(now); {
		case state == simulator.Open:
			simError(w, 500, "500.001.1001", "Unable to lock subscriber, a transaction is already in process for the current subscriber")
			return
		case state == simulator.Success && before.Amount == amount:
			plan = simulator.Plan{After: s.c.Decide, State: simulator.Failed, Code: "17"}
		}
	}
	merchant := fmt.Sprintf("%s-%s-1", simHex(2), simHex(4))
	e, _, err := s.book.Add(simulator.Entry{Kind: "payment", Handle: "ws_CO_" + now.In(nairobi).Format("02012006150405") + simHex(6),
		External: q.text("AccountReference"), Phone: phone, Amount: amount, Currency: currency, Callback: q.text("CallBackURL"),
		Data: merchant, Receipt: rand.Text()[:10], Plan: plan})
	if err != nil {
		simError(w, 500, "500.003.02", "System is busy. Please try again in few minutes.")
		return
	}
	s.lastPush[phone] = e.Handle
	s.sendCallback(e.Handle, plan)
	simJSON(w, 200, map[string]string{"MerchantRequestID": merchant, "CheckoutRequestID": e.Handle, "ResponseCode": "0",
		"ResponseDescription": "Success. Request accepted for processing", "CustomerMessage": "Success. Request accepted for processing"})
}

// plan decides what becomes of a request: the end of the number is the code.
func (s *Simulator) plan(phone string, codes map[string]codeMeaning) simulator.Plan {
	p := simulator.Plan{After: s.c.Decide, State: simulator.Success}
	last := phone[len(phone)-4:]
	code := strings.TrimLeft(last, "0")
	if last == "1003" {
		code = "SFC_IC0003"
	}
	switch _, known := codes[code]; {
	case last == "0129":
		return simulator.Plan{State: simulator.Open}
	case phone == "254708374149":
	case known && code != "0":
		p.State, p.Code = simulator.Failed, code
	}
	return s.injector.Plan(p, s.c.Decide)
}

// query answers a question about a push.
func (s *Simulator) query(w http.ResponseWriter, q simRequest) {
	id := q.text("CheckoutRequestID")
	e, found := s.book.FindHandle(id)
	state, code := e.StateAt(s.book.Now())
	switch {
	case q.text("BusinessShortCode") != s.c.ShortCode || !s.validPassword(q):
		simError(w, 500, "500.001.1001", "Wrong credentials")
	case !found || e.Kind != "payment":
		simError(w, 400, "400.002.02", "Bad Request - Invalid CheckoutRequestID")
	case state == simulator.Open:
		simError(w, 500, "500.001.1001", "The transaction is being processed")
	default:
		if code == "" {
			code = "0"
		}
		simJSON(w, 200, map[string]string{"ResponseCode": "0", "ResponseDescription": "The service request has been accepted successsfully",
			"MerchantRequestID": e.Data, "CheckoutRequestID": id, "ResultCode": code, "ResultDesc": simDesc(code)})
	}
}

// sendCallback notifies the caller how a push has ended, when it has.
func (s *Simulator) sendCallback(handle string, plan simulator.Plan) {
	if plan.State == simulator.Open {
		return
	}
	s.callbacks.Send(plan.After, 0, func() *http.Request {
		e, _ := s.book.FindHandle(handle)
		body := s.pushBody(&e)
		if body == nil {
			return nil
		}
		return simulator.Post(http.MethodPost, e.Callback, body)
	})
}

// pushBody is the callback of a push, nil before its end.
func (s *Simulator) pushBody(e *simulator.Entry) []byte {
	type item struct {
		Name  string
		Value any `json:",omitempty"`
	}
	state, code := e.StateAt(s.book.Now())
	if state == simulator.Open {
		return nil
	}
	callback := map[string]any{"MerchantRequestID": e.Data, "CheckoutRequestID": e.Handle}
	if state == simulator.Success {
		code = "0"
		callback["CallbackMetadata"] = map[string]any{"Item": []item{{"Amount", json.Number(e.Amount + ".00")}, {"MpesaReceiptNumber", e.Receipt},
			{"Balance", nil}, {"TransactionDate", json.Number(s.book.Now().In(nairobi).Format("20060102150405"))}, {"PhoneNumber", json.Number(e.Phone)}}}
	}
	callback["ResultCode"], callback["ResultDesc"] = simCode(code), simDesc(code)
	body, _ := json.Marshal(map[string]any{"Body": map[string]any{"stkCallback": callback}})
	return body
}

// simCode is a code as callbacks write it: a number where it is one.
func simCode(code string) any {
	if strings.Trim(code, "0123456789") == "" {
		return json.Number(code)
	}
	return code
}
