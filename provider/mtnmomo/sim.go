package mtnmomo

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"till/provider/simulator"
)

// SimConfig is how a simulated MTN behaves. Its zero value serves MTN's sandbox
// and every country, with the credentials SimUser, SimKey, SimCollectionKey and
// SimDisbursementKey.
type SimConfig struct {
	// NewPlatform makes it strict like momoapi.momo.africa: the token call needs
	// the target environment, and a wrong one is answered 400.
	NewPlatform bool
	// TargetEnvironment is the only one it serves; "" means all.
	TargetEnvironment string
	// APIUser, APIKey, CollectionKey and DisbursementKey are who is let in; ""
	// means those above.
	APIUser, APIKey, CollectionKey, DisbursementKey string
	// CallbackHost is the registered host of callbacks; "" lets any be called.
	CallbackHost string
	// CallbackMethod is PUT or POST; "" means PUT. MTN documents both.
	CallbackMethod string
	// ReasonObject writes the reason of a failure as an object, not as a string.
	ReasonObject bool
	// Decide is how long a customer takes; 0 means 2 s.
	Decide time.Duration
	// TokenLife is how long a token lives; 0 means an hour.
	TokenLife time.Duration
	// SlowTokens lets every token call take so long.
	SlowTokens time.Duration

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
	SimUser            = "c72025f5-5cd1-4630-99e4-8ba4722fad56"
	SimKey             = "simulated-api-key"
	SimCollectionKey   = "simulated-collection-key"
	SimDisbursementKey = "simulated-disbursement-key"
)

// SimSettings is [connection.mtnmomo] for a simulator without other settings, here as MTN
// Congo, called back on the same machine.
const SimSettings = `target_environment = "mtncongo"
api_user_env = "SIM_MTN_API_USER"
api_key_env = "SIM_MTN_API_KEY"
collection_subscription_key_env = "SIM_MTN_COLLECTION_KEY"
disbursement_subscription_key_env = "SIM_MTN_DISBURSEMENT_KEY"
callback_host = "127.0.0.1"
`

// SimSecrets are the credentials of SimSettings.
var SimSecrets = map[string]string{
	"SIM_MTN_API_USER": SimUser, "SIM_MTN_API_KEY": SimKey,
	"SIM_MTN_COLLECTION_KEY": SimCollectionKey, "SIM_MTN_DISBURSEMENT_KEY": SimDisbursementKey,
}

// simCurrencies are the documented target environments, each with the only
// currency that it takes.
var simCurrencies = map[string]string{
	sandboxEnvironment: "EUR",
	"mtnuganda":        "UGX", "mtnghana": "GHS", "mtnivorycoast": "XOF", "mtnzambia": "ZMW", "mtncameroon": "XAF", "mtnbenin": "XOF",
	"mtncongo": "XAF", "mtnswaziland": "SZL", "mtnguineaconakry": "GNF", "mtnsouthafrica": "ZAR", "mtnliberia": "LRD",
	"mtnsouthsudan": "SSP", "mtnnigeria": "NGN", "mtnrwanda": "RWF", "mtnguineabissau": "XOF",
}

// serves reports whether a request names a target environment that is served.
func (s *Simulator) serves(r *http.Request) bool {
	name := r.Header.Get("X-Target-Environment")
	return simCurrencies[name] != "" && (s.c.TargetEnvironment == "" || s.c.TargetEnvironment == name)
}

func (c SimConfig) withDefaults() SimConfig {
	or := func(s *string, d string) {
		if *s == "" {
			*s = d
		}
	}
	or(&c.APIUser, SimUser)
	or(&c.APIKey, SimKey)
	or(&c.CollectionKey, SimCollectionKey)
	or(&c.DisbursementKey, SimDisbursementKey)
	or(&c.CallbackMethod, http.MethodPut)
	if c.Decide <= 0 {
		c.Decide = 2 * time.Second
	}
	if c.TokenLife <= 0 {
		c.TokenLife = time.Hour
	}
	return c
}

// Simulator is MTN's side: tokens, a book, and callbacks. It is a
// http.Handler.
type Simulator struct {
	c         SimConfig
	book      *simulator.Book
	injector  *simulator.FaultInjector
	callbacks *simulator.CallbackSender
	handler   http.Handler

	mu     sync.Mutex
	users  map[string]*simUser
	tokens map[string]simToken
}

// simUser is an API user. Those of the sandbox are made by a call.
type simUser struct{ key, callbackHost string }

type simToken struct {
	product string
	until   time.Time
}

// The most that a simulator remembers beside its book.
const (
	maxSimTokens = 10_000
	maxSimUsers  = 10_000
)

// NewSimulator returns a simulated MTN. Close it at the end.
func NewSimulator(c SimConfig) (*Simulator, error) {
	c = c.withDefaults()
	book, err := simulator.OpenBook(c.Path, c.Now)
	if err != nil {
		return nil, err
	}
	s := &Simulator{c: c, book: book, injector: simulator.NewFaultInjector(c.Faults), tokens: map[string]simToken{},
		users: map[string]*simUser{c.APIUser: {c.APIKey, c.CallbackHost}}}
	s.callbacks = simulator.NewCallbackSender(s.injector, c.Dial)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1_0/apiuser", s.createUser)
	mux.HandleFunc("GET /v1_0/apiuser/{id}", s.readUser)
	mux.HandleFunc("POST /v1_0/apiuser/{id}/apikey", s.createKey)
	for _, k := range []serviceKind{collection, disbursement, refunding} {
		at := "/" + k.name
		mux.HandleFunc("POST "+at+"/v1_0/"+k.resource, s.authenticated(k, s.create))
		mux.HandleFunc("GET "+at+"/v1_0/"+k.resource+"/{ref}", s.authenticated(k, s.read))
		if k == refunding { // of the same product
			continue
		}
		mux.HandleFunc("POST "+at+"/token/{$}", func(w http.ResponseWriter, r *http.Request) { s.token(w, r, k) })
		mux.HandleFunc("GET "+at+"/v1_0/account/balance", s.authenticated(k, s.balance))
		mux.HandleFunc("GET "+at+"/v1_0/accountholder/msisdn/{id}/active", s.authenticated(k, s.active))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		simJSON(w, http.StatusNotFound, map[string]any{"statusCode": 404, "message": "Resource not found"})
	})
	s.handler = s.injector.Wrap(mux, func(r *http.Request) bool { return !simMovesMoney(r) })
	return s, nil
}

func simMovesMoney(r *http.Request) bool {
	return slices.ContainsFunc([]serviceKind{collection, disbursement, refunding}, func(k serviceKind) bool { return strings.Contains(r.URL.Path, "/"+k.resource) })
}

// ServeHTTP answers as MTN does.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The new gateway refuses the names of some libraries, with a page.
	if s.c.NewPlatform && strings.Contains(r.UserAgent(), "python-requests") {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, "<html><body><h1>403 Forbidden</h1></body></html>")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxSimBody)
	s.handler.ServeHTTP(w, r)
}

const maxSimBody = 64 << 10

// Close ends callbacks that are due and closes the book.
func (s *Simulator) Close() error {
	s.callbacks.Stop()
	return s.book.Close()
}

// Book is what the simulated MTN remembers.
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

// simError answers with a code, as MTN's own errors do.
func simError(w http.ResponseWriter, status int, code, message string) {
	simJSON(w, status, map[string]string{"code": code, "message": message})
}

// createUser makes an API user, as in the sandbox.
func (s *Simulator) createUser(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Reference-Id")
	var b struct {
		Host string `json:"providerCallbackHost"`
	}
	switch {
	case !s.subscribed(r, ""):
		s.rejectKey(w)
	case !isUUIDv4(id) || json.NewDecoder(r.Body).Decode(&b) != nil:
		w.WriteHeader(http.StatusBadRequest)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users[id] != nil || len(s.users) >= maxSimUsers {
			simError(w, http.StatusConflict, "RESOURCE_ALREADY_EXIST", "Duplicated reference id. Creation of resource failed.")
			return
		}
		s.users[id] = &simUser{callbackHost: b.Host}
		w.WriteHeader(http.StatusCreated)
	}
}

func (s *Simulator) user(id string) (simUser, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[id]; u != nil {
		return *u, true
	}
	return simUser{}, false
}

func (s *Simulator) readUser(w http.ResponseWriter, r *http.Request) {
	u, ok := s.user(r.PathValue("id"))
	switch {
	case !s.subscribed(r, ""):
		s.rejectKey(w)
	case !ok:
		simError(w, http.StatusNotFound, "RESOURCE_NOT_FOUND", "Requested resource was not found.")
	default:
		simJSON(w, http.StatusOK, map[string]string{"providerCallbackHost": u.callbackHost, "targetEnvironment": sandboxEnvironment})
	}
}

func (s *Simulator) createKey(w http.ResponseWriter, r *http.Request) {
	if !s.subscribed(r, "") {
		s.rejectKey(w)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[r.PathValue("id")]
	if u == nil {
		simError(w, http.StatusNotFound, "RESOURCE_NOT_FOUND", "Requested resource was not found.")
		return
	}
	u.key = strings.ToLower(rand.Text())
	simJSON(w, http.StatusCreated, map[string]string{"apiKey": u.key})
}

// subscribed reports whether the subscription key is that of the product, or
// of any if the product is "".
func (s *Simulator) subscribed(r *http.Request, product string) bool {
	key := r.Header.Get("Ocp-Apim-Subscription-Key")
	return product != disbursement.name && key == s.c.CollectionKey || product != collection.name && key == s.c.DisbursementKey
}

func (s *Simulator) rejectKey(w http.ResponseWriter) {
	simJSON(w, http.StatusUnauthorized, map[string]any{"statusCode": 401,
		"message": "Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription."})
}

// token gives a token of a product.
func (s *Simulator) token(w http.ResponseWriter, r *http.Request, k serviceKind) {
	if s.c.SlowTokens > 0 {
		select {
		case <-time.After(s.c.SlowTokens):
		case <-r.Context().Done():
			return
		}
	}
	id, key, _ := r.BasicAuth()
	u, ok := s.user(id)
	body, _ := io.ReadAll(r.Body)
	switch {
	case !s.subscribed(r, k.name):
		s.rejectKey(w)
	case s.c.NewPlatform && !s.serves(r):
		simJSON(w, http.StatusBadRequest, map[string]string{"error": "Invalid or missing X-Target-Environment header"})
	case len(body) > 0:
		w.WriteHeader(http.StatusBadRequest)
	case !ok || u.key == "" || u.key != key:
		if s.c.NewPlatform {
			simJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		} else {
			simJSON(w, http.StatusInternalServerError, map[string]string{"error": "login_failed"})
		}
	default:
		simJSON(w, http.StatusOK, map[string]any{"access_token": s.issueToken(k), "token_type": "access_token",
			"expires_in": int(s.c.TokenLife.Seconds())})
	}
}

func (s *Simulator) issueToken(k serviceKind) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) >= maxSimTokens {
		clear(s.tokens)
	}
	text := "eyJ0eXAiOiJKV1QiLCJhbGciOiJSMjU2In0." + rand.Text()
	s.tokens[text] = simToken{k.name, s.book.Now().Add(s.c.TokenLife)}
	return text
}

// authenticated lets a call in that has the key and a token of the product, and the
// right target environment.
func (s *Simulator) authenticated(k serviceKind, next func(http.ResponseWriter, *http.Request, serviceKind)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		t, ok := s.tokens[text]
		s.mu.Unlock()
		switch {
		case !s.subscribed(r, k.name):
			s.rejectKey(w)
		case !ok || t.product != k.name || !s.book.Now().Before(t.until):
			simJSON(w, http.StatusUnauthorized, map[string]any{"statusCode": 401, "message": "Unauthorized. Access token is missing, invalid or has expired."})
		case !s.serves(r) && s.c.NewPlatform:
			simJSON(w, http.StatusBadRequest, map[string]string{"error": "Invalid or missing X-Target-Environment header"})
		case !s.serves(r):
			simError(w, http.StatusInternalServerError, "NOT_ALLOWED_TARGET_ENVIRONMENT", "Access to target environment is forbidden.")
		default:
			next(w, r, k)
		}
	}
}
