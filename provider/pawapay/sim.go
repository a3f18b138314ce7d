package pawapay

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"till"
	"till/provider/simulator"
	"till/provider/wire"
)

// SimConfig is what a simulated pawaPay is made of. The zero value works.
type SimConfig struct {
	Token   string           // the API token that it takes; "" means "simulated"
	Company string           // whose account it is; "" means "Simulated"
	Path    string           // the file of its book; "" means memory
	Now     func() time.Time // its clock; nil means the machine's
	Decide  time.Duration    // how long customers and operators take; 0 means a second
	Faults  simulator.Faults

	// DepositCallback, PayoutCallback and RefundCallback are what the dashboard would hold.
	DepositCallback, PayoutCallback, RefundCallback string
	// CallbackRetries is how often a callback is tried again, a second apart;
	// 0 means 15. The real one goes on for 15 minutes.
	CallbackRetries int
	// SignCallbacks signs callbacks; in ASN.1, or side by side if RawSignatures.
	SignCallbacks, RawSignatures bool
	// ClientKey is the caller's public key in PEM, of the id ClientKeyID. With
	// it unsigned initiations are refused.
	ClientKey, ClientKeyID string
	// OutOfFunds refuses every payout and fails every refund because the wallet is empty.
	OutOfFunds bool
	// Delayed keeps new payouts and refunds enqueued: their providers are not there.
	Delayed bool
	// Dial replaces the dialer of callbacks, for a network in memory; nil means the system's.
	Dial simulator.Dial
}

// SimToken is the token of a simulator without another.
const SimToken = "simulated"

// SimSettings is [connection.pawapay] for a simulator without other settings.
const SimSettings = `api_token_env = "SIM_PAWAPAY_TOKEN"
operations = ["payments", "payouts"]
`

// SimSecrets are the credentials of SimSettings.
var SimSecrets = map[string]string{"SIM_PAWAPAY_TOKEN": SimToken}

// Simulator plays pawaPay, as an http.Handler. It takes the numbers of
// pawaPay's own sandbox: the last three digits choose what happens.
type Simulator struct {
	c         SimConfig
	book      *simulator.Book
	injector  *simulator.FaultInjector
	callbacks *simulator.CallbackSender
	handler   http.Handler
	signer    *ecdsa.PrivateKey
	client    crypto.PublicKey // nil: initiations need not be signed
	refunds   simRefunds
	markets   simMarkets
}

// NewSimulator starts a simulated pawaPay. Close it.
func NewSimulator(c SimConfig) (*Simulator, error) {
	if c.Token == "" {
		c.Token = SimToken
	}
	if c.Company == "" {
		c.Company = "Simulated"
	}
	if c.Decide <= 0 {
		c.Decide = time.Second
	}
	if c.CallbackRetries == 0 {
		c.CallbackRetries = 15
	}
	s := &Simulator{c: c, injector: simulator.NewFaultInjector(c.Faults)}
	if c.ClientKey != "" {
		block, _ := pem.Decode([]byte(c.ClientKey))
		if block == nil {
			return nil, errors.New("the client's key is not in PEM")
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the client's key: %w", err)
		}
		s.client = key
	}
	var err error
	if s.signer, err = newSimKey(); err != nil {
		return nil, err
	}
	if s.book, err = simulator.OpenBook(c.Path, c.Now); err != nil {
		return nil, err
	}
	s.readRefunds()
	s.callbacks = simulator.NewCallbackSender(s.injector, c.Dial)
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+refunds.path, s.refund)
	for _, k := range []*serviceKind{&deposits, &payouts, &refunds} {
		if k != &refunds {
			mux.HandleFunc("POST "+k.path, func(w http.ResponseWriter, r *http.Request) { s.initiate(w, r, k) })
		}
		if k != &deposits {
			mux.HandleFunc("POST "+k.path+"/fail-enqueued/{id}", func(w http.ResponseWriter, r *http.Request) { s.failEnqueued(w, r, k) })
		}
		mux.HandleFunc("GET "+k.path+"/{id}", func(w http.ResponseWriter, r *http.Request) { s.status(w, r, k) })
		mux.HandleFunc("POST "+k.path+"/resend-callback/{id}", func(w http.ResponseWriter, r *http.Request) { s.resend(w, r, k) })
	}
	mux.HandleFunc("GET /v2/active-conf", s.activeConf)
	mux.HandleFunc("GET /v2/availability", s.availability)
	mux.HandleFunc("GET /v2/wallet-balances", s.balances)
	mux.HandleFunc("GET /v2/public-key/http", s.publicKeys)
	mux.HandleFunc("GET "+simPages+"{id}", s.page)
	s.handler = s.injector.Wrap(s.authenticated(mux), func(r *http.Request) bool { return r.URL.Path == "/v2/public-key/http" })
	return s, nil
}

// ServeHTTP answers as pawaPay would.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Book is what it remembers.
func (s *Simulator) Book() *simulator.Book { return s.book }

// Close ends the callbacks and closes the book.
func (s *Simulator) Close() error {
	s.callbacks.Stop()
	return s.book.Close()
}

// simKind is the entry's kind in the book.
func simKind(k *serviceKind) string {
	switch k {
	case &refunds:
		return "refund"
	case &payouts:
		return "payout"
	}
	return "payment"
}

func (s *Simulator) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); {
		case r.URL.Path == "/v2/public-key/http", strings.HasPrefix(r.URL.Path, simPages):
			next.ServeHTTP(w, r)
		case !ok:
			simError(w, http.StatusUnauthorized, "NO_AUTHENTICATION", "The API token is missing.")
		case token != s.c.Token:
			simError(w, http.StatusForbidden, "AUTHENTICATION_ERROR", "The API token is invalid.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func simError(w http.ResponseWriter, status int, code, message string) {
	simJSON(w, status, map[string]any{"failureReason": simReason{code, message}})
}

func simJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body, _ := json.Marshal(v)
	w.Write(body)
}

type simReason struct {
	Code    string `json:"failureCode"`
	Message string `json:"failureMessage"`
}

// simRequest is what pawaPay reads of an initiation.
type simRequest struct {
	DepositID            *string           `json:"depositId"`
	PayoutID             *string           `json:"payoutId"`
	Amount               *string           `json:"amount"`
	Currency             *string           `json:"currency"`
	Payer                *simParty         `json:"payer"`
	Recipient            *simParty         `json:"recipient"`
	CustomerMessage      *string           `json:"customerMessage"`
	ClientReferenceID    string            `json:"clientReferenceId"`
	PreAuthorisationCode string            `json:"preAuthorisationCode"`
	SuccessfulURL        string            `json:"successfulUrl"`
	FailedURL            string            `json:"failedUrl"`
	Metadata             []json.RawMessage `json:"metadata"`
}

type simParty struct {
	Type           string `json:"type"`
	AccountDetails struct {
		PhoneNumber string `json:"phoneNumber"`
		Provider    string `json:"provider"`
	} `json:"accountDetails"`
}

// What pawaPay's schema demands (v2/docs).
var (
	simUUID    = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	simAmount  = regexp.MustCompile(`^([0]|([1-9][0-9]{0,17}))([.][0-9]{0,3}[1-9])?$`)
	simMessage = regexp.MustCompile(`^[a-zA-Z0-9 ]{4,22}$`)
	simPhone   = regexp.MustCompile(`^[0-9]{8,15}$`)
)

const maxSimBody = 64 << 10

// readInitiation reads a body, and answers one that cannot be read.
func (s *Simulator) readInitiation(w http.ResponseWriter, r *http.Request, into any) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSimBody))
	if err != nil {
		simError(w, http.StatusBadRequest, "INVALID_INPUT", "We were unable to parse the body of the request.")
		return false
	}
	if s.client != nil {
		if err := s.checkClient(r, body); err != nil {
			simError(w, http.StatusForbidden, "HTTP_SIGNATURE_ERROR", err.Error())
			return false
		}
	}
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		code := "INVALID_INPUT"
		if strings.Contains(err.Error(), "unknown field") {
			code = "UNSUPPORTED_PARAMETER"
		}
		simError(w, http.StatusBadRequest, code, "We were unable to parse the body of the request.")
		return false
	}
	return true
}

// initiate takes a deposit or a payout.
func (s *Simulator) initiate(w http.ResponseWriter, r *http.Request, k *serviceKind) {
	var q simRequest
	if !s.readInitiation(w, r, &q) {
		return
	}
	id, party, missing := q.party(k)
	if missing != "" {
		simError(w, http.StatusBadRequest, "MISSING_PARAMETER", "The parameter '"+missing+"' is missing.")
		return
	}
	if wrong := q.invalidField(id); wrong != "" {
		simError(w, http.StatusBadRequest, "INVALID_PARAMETER", "The parameter '"+wrong+"' is not valid.")
		return
	}
	if code, name := q.checkFlow(party.AccountDetails.Provider, k); code != "" {
		simError(w, http.StatusBadRequest, code, "The parameter '"+name+"' is missing or not supported by the provider.")
		return
	}
	now := s.book.Now().UTC().Truncate(time.Second)
	answer := simInitiated{Status: "ACCEPTED", Created: now.Format(time.RFC3339)}
	answer.setID(k, id)
	if k == &deposits {
		answer.NextStep = nextStep(party.AccountDetails.Provider)
	}
	if old, found := s.book.Find(simKind(k), id); found {
		answer.Status, answer.NextStep, answer.Created = "DUPLICATE_IGNORED", "", old.At.UTC().Format(time.RFC3339)
	} else if reason := s.rejects(&q, party, k); reason != nil {
		answer.Status, answer.NextStep, answer.Created, answer.FailureReason = "REJECTED", "", "", reason
	} else if _, fresh, err := s.book.Add(s.entry(&q, party, id, k)); err != nil {
		simError(w, http.StatusInternalServerError, "UNKNOWN_ERROR", err.Error())
		return
	} else if !fresh {
		answer.Status, answer.NextStep = "DUPLICATE_IGNORED", ""
	} else {
		s.sendCallback(k, id, s.c.Decide)
		if answer.NextStep == stepGetURL {
			s.sendAddress(id, simHost(r))
		}
	}
	simJSON(w, http.StatusOK, &answer)
}

type simInitiated struct {
	RefundID      string     `json:"refundId,omitempty"`
	DepositID     string     `json:"depositId,omitempty"`
	PayoutID      string     `json:"payoutId,omitempty"`
	Status        string     `json:"status"`
	NextStep      string     `json:"nextStep,omitempty"`
	Created       string     `json:"created,omitempty"`
	FailureReason *simReason `json:"failureReason,omitempty"`
}

func (a *simInitiated) setID(k *serviceKind, id string) {
	if k == &payouts {
		a.PayoutID = id
	} else {
		a.DepositID = id
	}
}

// party returns what differs between the kinds, and what is missing.
func (q *simRequest) party(k *serviceKind) (id string, party *simParty, missing string) {
	name, who, partyName := q.DepositID, q.Payer, "payer"
	if k == &payouts {
		name, who, partyName = q.PayoutID, q.Recipient, "recipient"
	}
	switch {
	case name == nil:
		return "", nil, k.id
	case q.Amount == nil:
		return "", nil, "amount"
	case q.Currency == nil:
		return "", nil, "currency"
	case who == nil:
		return "", nil, partyName
	}
	return *name, who, ""
}

// invalidField returns the first member that is against the schema.
func (q *simRequest) invalidField(id string) string {
	switch {
	case !simUUID.MatchString(id):
		return "id"
	case !simAmount.MatchString(*q.Amount) || len(*q.Amount) > 23:
		return "amount"
	case q.CustomerMessage != nil && !simMessage.MatchString(*q.CustomerMessage):
		return "customerMessage"
	case len(q.Metadata) > 10:
		return "metadata"
	}
	return ""
}

// rejects returns why an initiation is rejected, nil if it is not.
func (s *Simulator) rejects(q *simRequest, p *simParty, k *serviceKind) *simReason {
	i := slices.IndexFunc(defaultRoutes, func(r Route) bool { return r.Code == p.AccountDetails.Provider && p.Type == "MMO" })
	if i < 0 {
		return &simReason{"INVALID_PROVIDER", "The provider is not supported."}
	}
	country, _ := till.CountryOf(defaultRoutes[i].Country)
	i = slices.IndexFunc(defaultRoutes, func(r Route) bool { return r.Code == p.AccountDetails.Provider && r.Currency == *q.Currency })
	if i < 0 {
		return &simReason{"INVALID_CURRENCY", "The currency is not supported by the provider."}
	}
	_, part, _ := strings.Cut(*q.Amount, ".")
	whole, _ := wire.ParseMinor(*q.Amount, len(part))
	market := s.market(p.AccountDetails.Provider, k)
	switch phone := p.AccountDetails.PhoneNumber; {
	case len(part) > defaultRoutes[i].decimals(k):
		return &simReason{"INVALID_AMOUNT", "The amount has more decimals than the provider supports."}
	case market.Status == simLacking:
		return &simReason{"INVALID_PROVIDER", "The provider is not active for the account."}
	case market.Status == simClosed, market.Status == simDelayed && k == &deposits:
		return &simReason{"PROVIDER_TEMPORARILY_UNAVAILABLE", "The provider does not take requests now."}
	case whole <= 0 || len(*q.Amount) > 12 || market.outside(*q.Amount):
		return &simReason{"AMOUNT_OUT_OF_BOUNDS", "The amount is outside of the limits of the provider."}
	case !simPhone.MatchString(phone) || country != nil && !strings.HasPrefix(phone, country.CallingCode):
		return &simReason{"INVALID_PHONE_NUMBER", "The phone number is not valid for the provider."}
	case k == &payouts && s.c.OutOfFunds:
		return &simReason{"PAWAPAY_WALLET_OUT_OF_FUNDS", "The balance of the wallet is not sufficient."}
	}
	return nil
}

// The endings of pawaPay's sandbox numbers: the last three digits.
var (
	simDeposits = map[string]string{
		"019": "PAYER_LIMIT_REACHED", "029": "PAYER_NOT_FOUND", "039": "PAYMENT_NOT_APPROVED", "049": "INSUFFICIENT_BALANCE",
		"059": "TRANSACTION_ALREADY_IN_PROCESS", "069": "UNSPECIFIED_FAILURE",
	}
	simPayouts = map[string]string{
		"089": "RECIPIENT_NOT_FOUND", "099": "WALLET_LIMIT_REACHED", "109": "RECIPIENT_LIMIT_REACHED", "119": "UNSPECIFIED_FAILURE",
	}
)

const simStuck = "129" // accepted, and then nothing

// planOf returns what becomes of a request about a number.
func (s *Simulator) planOf(phone string, delayed bool, k *serviceKind) simulator.Plan {
	endings := simPayouts
	if k == &deposits {
		endings = simDeposits
	}
	plan := simulator.Plan{After: s.c.Decide, State: simulator.Success}
	last := phone[len(phone)-3:]
	switch code, fails := endings[last]; {
	case last == simStuck, delayed:
		plan = simulator.Plan{State: simulator.Open}
	case fails:
		plan.State, plan.Code = simulator.Failed, code
	}
	return s.injector.Plan(plan, s.c.Decide)
}

// entry writes a request down, with what will become of it.
func (s *Simulator) entry(q *simRequest, p *simParty, id string, k *serviceKind) simulator.Entry {
	phone := p.AccountDetails.PhoneNumber
	plan := s.planOf(phone, s.delayed(p.AccountDetails.Provider, k), k)
	if q.PreAuthorisationCode == simWrongCode {
		plan.State, plan.Code = simulator.Failed, "PAYMENT_NOT_APPROVED"
	}
	data := simData{Provider: p.AccountDetails.Provider, Reference: q.ClientReferenceID, Metadata: q.Metadata, Back: q.SuccessfulURL}
	if q.CustomerMessage != nil {
		data.Message = *q.CustomerMessage
	}
	text, _ := json.Marshal(data)
	return simulator.Entry{Kind: simKind(k), Reference: id, Handle: id + " " + k.id, External: q.ClientReferenceID, Phone: phone,
		Amount: *q.Amount, Currency: *q.Currency, Data: string(text), Plan: plan}
}

// simData is what else pawaPay repeats.
type simData struct {
	Deposit   string            `json:"deposit,omitempty"` // of a refund: what it gives back
	Provider  string            `json:"provider"`
	Reference string            `json:"reference"`
	Message   string            `json:"message"`
	Back      string            `json:"back,omitempty"` // successfulUrl
	Metadata  []json.RawMessage `json:"metadata"`
}
