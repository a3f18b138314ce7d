package airtel

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"till/provider/simulator"
)

// SimConfig is how a simulated Airtel behaves. Its zero value is Airtel Congo
// with the credentials SimClientID, SimClientSecret and SimPIN.
type SimConfig struct {
	Country  string // the only one it serves; "" means CG
	Currency string // "" means XAF
	// NumberLength is how many digits a number must have, without the calling
	// code; 0 means 9. ZeroFirst says that it must begin with 0, as it must in
	// Congo.
	NumberLength int
	ZeroFirst    bool

	ClientID, ClientSecret string
	PIN                    string
	// SignedOnly refuses requests for money that are not signed, as Zambia does.
	SignedOnly bool
	// SyncPayouts answers a disbursement with its end, TS; otherwise it is
	// answered DP00900001006 and decided a little later.
	SyncPayouts bool

	// CallbackURL is what was entered in the portal; "" means no callbacks.
	CallbackURL string
	// CallbackKey adds a hash to callbacks. HashInner hashes the transaction
	// alone instead of the object around it: documents differ.
	CallbackKey string
	HashInner   bool

	Decide    time.Duration // how long a customer takes; 0 means 2 s
	TokenLife time.Duration // 0 means 180 s, as documented

	Faults simulator.Faults
	// Path is the file of its book, "" for memory alone.
	Path string
	// Now is its clock; nil means the machine's.
	Now func() time.Time
	// Dial replaces the dialer of callbacks, for a network in memory; nil means the system's.
	Dial simulator.Dial
}

// The credentials of a simulator without others.
const (
	SimClientID     = "simulated-client"
	SimClientSecret = "simulated-secret"
	SimPIN          = "1234"
)

func (c SimConfig) withDefaults() SimConfig {
	or := func(s *string, d string) {
		if *s == "" {
			*s = d
		}
	}
	c.ZeroFirst = c.ZeroFirst || c.Country == "" || c.Country == "CG"
	or(&c.Country, "CG")
	or(&c.Currency, "XAF")
	or(&c.ClientID, SimClientID)
	or(&c.ClientSecret, SimClientSecret)
	or(&c.PIN, SimPIN)
	if c.NumberLength == 0 {
		c.NumberLength = 9
	}
	if c.Decide <= 0 {
		c.Decide = 2 * time.Second
	}
	if c.TokenLife <= 0 {
		c.TokenLife = 180 * time.Second
	}
	return c
}

// Simulator is Airtel's side: tokens, a book, and callbacks. It is a
// http.Handler.
type Simulator struct {
	c         SimConfig
	book      *simulator.Book
	injector  *simulator.FaultInjector
	callbacks *simulator.CallbackSender
	key       *rsa.PrivateKey // for PINs and for signed messages
	handler   http.Handler

	mu     sync.Mutex
	tokens map[string]time.Time // until when
}

// maxSimTokens is how many tokens a simulator remembers.
const maxSimTokens = 10_000

// NewSimulator returns a simulated Airtel. Close it at the end.
func NewSimulator(c SimConfig) (*Simulator, error) {
	c = c.withDefaults()
	key, err := simKey()
	if err != nil {
		return nil, err
	}
	book, err := simulator.OpenBook(c.Path, c.Now)
	if err != nil {
		return nil, err
	}
	s := &Simulator{c: c, book: book, injector: simulator.NewFaultInjector(c.Faults), key: key, tokens: map[string]time.Time{}}
	s.callbacks = simulator.NewCallbackSender(s.injector, c.Dial)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /auth/oauth2/token", s.token)
	mux.HandleFunc("GET /v1/rsa/encryption-keys", s.authenticated(s.encryptionKeys))
	mux.HandleFunc("GET /standard/v1/users/balance", s.authenticated(s.balance))
	mux.HandleFunc("POST /merchant/v1/payments/{$}", s.authenticated(s.push))
	mux.HandleFunc("POST /merchant/v2/payments/{$}", s.authenticated(s.push))
	mux.HandleFunc("GET /standard/v1/payments/{id}", s.authenticated(s.enquire("payment")))
	for _, version := range []string{"v1", "v2"} {
		mux.HandleFunc("POST /standard/"+version+"/disbursements/{$}", s.authenticated(s.disburse))
		mux.HandleFunc("GET /standard/"+version+"/disbursements/{id}", s.authenticated(s.enquire("payout")))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		simRouterError(w, http.StatusNotFound, "ROUTER003", "Resource not found")
	})
	s.handler = s.injector.Wrap(mux, func(r *http.Request) bool {
		return !strings.Contains(r.URL.Path, "/payments/") && !strings.Contains(r.URL.Path, "/disbursements/")
	})
	return s, nil
}

const maxSimBody = 64 << 10

// ServeHTTP answers as Airtel does.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSimBody)
	s.handler.ServeHTTP(w, r)
}

// Close ends callbacks that are due and closes the book.
func (s *Simulator) Close() error {
	s.callbacks.Stop()
	return s.book.Close()
}

// Book is what the simulated Airtel remembers.
func (s *Simulator) Book() *simulator.Book { return s.book }

// ForgetTokens makes every token that was given out worthless.
func (s *Simulator) ForgetTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

func simJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

// simEnvelope answers in Airtel's usual form.
func simEnvelope(w http.ResponseWriter, status int, data any, code, result, message string, ok bool) {
	inside := "200"
	if !ok {
		inside = "400"
	}
	out := map[string]any{"status": map[string]any{"code": inside, "message": message,
		"result_code": result, "response_code": code, "success": ok}}
	if data != nil {
		out["data"] = data
	}
	simJSON(w, status, out)
}

// simReject answers with a failure inside HTTP 200.
func simReject(w http.ResponseWriter, code, result, message string) {
	simEnvelope(w, http.StatusOK, nil, code, result, message, false)
}

// simRouterError answers as the gateway does, without the usual envelope.
func simRouterError(w http.ResponseWriter, status int, code, message string) {
	simJSON(w, status, map[string]string{"status_message": message, "status_code": code})
}

func (s *Simulator) token(w http.ResponseWriter, r *http.Request) {
	var b struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Grant  string `json:"grant_type"`
	}
	if json.NewDecoder(r.Body).Decode(&b) != nil || b.ID != s.c.ClientID || b.Secret != s.c.ClientSecret || b.Grant != "client_credentials" {
		simJSON(w, http.StatusBadRequest, map[string]string{"error_description": "Invalid client authentication", "error": "invalid_client"})
		return
	}
	text := rand.Text()
	s.mu.Lock()
	if len(s.tokens) >= maxSimTokens {
		clear(s.tokens)
	}
	s.tokens[text] = s.book.Now().Add(s.c.TokenLife)
	s.mu.Unlock()
	// A string, as documented.
	simJSON(w, http.StatusOK, map[string]string{"access_token": text, "token_type": "bearer",
		"expires_in": simDecimal(int64(s.c.TokenLife.Seconds()))})
}

// authenticated lets a call in that has a token and names the country.
func (s *Simulator) authenticated(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		until, ok := s.tokens[text]
		s.mu.Unlock()
		country := r.Header.Get("X-Country")
		switch {
		case !ok || !s.book.Now().Before(until):
			simJSON(w, http.StatusForbidden, map[string]string{
				"error_description": "The access token is invalid or has expired", "error": "invalid_token"})
		case country == "":
			simRouterError(w, http.StatusBadRequest, "ROUTER110", "Partner null not found")
		case country != s.c.Country && strings.Contains(r.URL.Path, "/disbursements/"):
			simEnvelope(w, http.StatusBadRequest, nil, "DP00900001013", "ESB000034", "Invalid country", false)
		case country != s.c.Country:
			simRouterError(w, http.StatusBadRequest, "ROUTER006", "Invalid country")
		case r.Header.Get("X-Currency") == "":
			simReject(w, "", "ESB000008", "Currency is missing")
		case r.Header.Get("X-Currency") != s.c.Currency:
			simRouterError(w, http.StatusBadRequest, "ROUTER112", "Invalid currency")
		default:
			next(w, r)
		}
	}
}

// balance has thousands separators, as was seen.
func (s *Simulator) balance(w http.ResponseWriter, _ *http.Request) {
	simEnvelope(w, http.StatusOK, map[string]string{"balance": "15,037,600.00", "currency": s.c.Currency, "account_status": "Active"},
		"DP02100000001", "ESB000010", "Success", true)
}

func (s *Simulator) encryptionKeys(w http.ResponseWriter, _ *http.Request) {
	simEnvelope(w, http.StatusOK, map[string]any{"key_id": 100, "key": SimPublicKey,
		"valid_upto": s.book.Now().AddDate(0, 1, 0).Format("02-01-2006 15:04:05")}, "DP02010001001", "ESB000010", "Success", true)
}
