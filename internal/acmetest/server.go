package acmetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a certificate authority.
type Server struct {
	// HTTPAddr and TLSAddr are where the names that are ordered are found. A challenge
	// whose address is "" is not offered. They are set before the first order.
	HTTPAddr, TLSAddr string
	// Life is how long certificates are valid; 0 means 90 days.
	Life time.Duration

	url    string
	key    *ecdsa.PrivateKey
	root   *x509.Certificate
	rootDE []byte

	mu       sync.Mutex
	refuse   string // the detail of every refusal; "": none
	nonces   map[string]bool
	accounts map[string]*ecdsa.PublicKey // by the account's URL
	orders   []*order
	issued   chan string // the names of certificates, as they are issued
}

// order is one order, of one name, with one authorization.
type order struct {
	name, status string
	token        string
	failure      string
	key          *ecdsa.PublicKey // of the account
	chain        []byte
}

// New starts a certificate authority, which stops with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{nonces: map[string]bool{}, accounts: map[string]*ecdsa.PublicKey{}, issued: make(chan string, 100)}
	var err error
	if s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	if s.rootDE, err = x509.CreateCertificate(rand.Reader, template, template, s.key.Public(), s.key); err != nil {
		t.Fatal(err)
	}
	if s.root, err = x509.ParseCertificate(s.rootDE); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.handler())
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

// Directory returns the address that a client is configured with.
func (s *Server) Directory() string { return s.url + "/directory" }

// Roots returns the pool that trusts this authority.
func (s *Server) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.root)
	return pool
}

// Refuse has every order refused, with a detail; "" ends that.
func (s *Server) Refuse(detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = detail
}

// Issued receives the name of each certificate when it is issued.
func (s *Server) Issued() <-chan string { return s.issued }

// Orders returns how many orders there were, refused ones included.
func (s *Server) Orders() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.orders)
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /directory", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{
			"newNonce": s.url + "/nonce", "newAccount": s.url + "/account", "newOrder": s.url + "/order",
			"revokeCert": s.url + "/revoke", "keyChange": s.url + "/key", "meta": map[string]any{"termsOfService": s.url + "/terms"},
		})
	})
	mux.HandleFunc("/nonce", func(w http.ResponseWriter, _ *http.Request) {
		s.nonce(w)
		w.WriteHeader(http.StatusOK)
	})
	mux.HandleFunc("POST /account", s.signed(s.newAccount))
	mux.HandleFunc("POST /order", s.signed(s.newOrder))
	mux.HandleFunc("POST /order/{n}", s.signed(s.ofOrder(s.showOrder)))
	mux.HandleFunc("POST /authorization/{n}", s.signed(s.ofOrder(s.showAuthorization)))
	mux.HandleFunc("POST /challenge/{n}/{kind}", s.signed(s.ofOrder(s.takeChallenge)))
	mux.HandleFunc("POST /finalize/{n}", s.signed(s.ofOrder(s.finalize)))
	mux.HandleFunc("POST /certificate/{n}", s.signed(s.ofOrder(s.showCertificate)))
	return mux
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, status int, kind, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"type": "urn:ietf:params:acme:error:" + kind, "detail": detail, "status": status})
}

func (s *Server) nonce(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := rand.Text()
	s.nonces[n] = true
	w.Header().Set("Replay-Nonce", n)
	w.Header().Set("Cache-Control", "no-store")
}

func (s *Server) newAccount(w http.ResponseWriter, r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	url, status := "", http.StatusOK
	for u, k := range s.accounts {
		if k.Equal(r.key) {
			url = u
		}
	}
	if url == "" {
		url, status = fmt.Sprintf("%s/account/%d", s.url, len(s.accounts)+1), http.StatusCreated
		s.accounts[url] = r.key
	}
	w.Header().Set("Location", url)
	writeJSON(w, status, map[string]any{"status": "valid"})
}

func (s *Server) newOrder(w http.ResponseWriter, r *request) {
	var in struct {
		Identifiers []struct{ Type, Value string }
	}
	if err := json.Unmarshal(r.payload, &in); err != nil || len(in.Identifiers) != 1 || in.Identifiers[0].Type != "dns" {
		problem(w, http.StatusBadRequest, "malformed", "an order has one DNS name here")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &order{name: in.Identifiers[0].Value, status: "pending", token: rand.Text(), key: r.key}
	s.orders = append(s.orders, o)
	if s.refuse != "" {
		problem(w, http.StatusForbidden, "rejectedIdentifier", s.refuse)
		return
	}
	n := len(s.orders) - 1
	w.Header().Set("Location", fmt.Sprintf("%s/order/%d", s.url, n))
	writeJSON(w, http.StatusCreated, s.orderJSON(n, o))
}

// orderJSON is called with the lock held.
func (s *Server) orderJSON(n int, o *order) map[string]any {
	out := map[string]any{
		"status": o.status, "expires": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		"identifiers":    []map[string]string{{"type": "dns", "value": o.name}},
		"authorizations": []string{fmt.Sprintf("%s/authorization/%d", s.url, n)},
		"finalize":       fmt.Sprintf("%s/finalize/%d", s.url, n),
	}
	if o.chain != nil {
		out["certificate"] = fmt.Sprintf("%s/certificate/%d", s.url, n)
	}
	return out
}

// ofOrder finds the order in the path. The handler is called with the lock held.
func (s *Server) ofOrder(h func(w http.ResponseWriter, r *request, n int, o *order)) func(http.ResponseWriter, *request) {
	return func(w http.ResponseWriter, r *request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var n int
		if _, err := fmt.Sscan(r.PathValue("n"), &n); err != nil || n < 0 || n >= len(s.orders) || !s.orders[n].key.Equal(r.key) {
			problem(w, http.StatusNotFound, "malformed", "there is no such order of this account")
			return
		}
		h(w, r, n, s.orders[n])
	}
}

func (s *Server) showOrder(w http.ResponseWriter, _ *request, n int, o *order) {
	w.Header().Set("Location", fmt.Sprintf("%s/order/%d", s.url, n))
	writeJSON(w, http.StatusOK, s.orderJSON(n, o))
}

func (s *Server) showAuthorization(w http.ResponseWriter, _ *request, n int, o *order) {
	var challenges []map[string]any
	for _, kind := range []string{"tls-alpn-01", "http-01"} {
		if s.address(kind) != "" {
			challenges = append(challenges, s.challengeJSON(n, o, kind))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"status": authorizationStatus(o), "identifier": map[string]string{"type": "dns", "value": o.name}, "challenges": challenges,
	})
}

func authorizationStatus(o *order) string {
	if o.status == "ready" {
		return "valid"
	}
	return o.status
}

func (s *Server) challengeJSON(n int, o *order, kind string) map[string]any {
	out := map[string]any{"type": kind, "url": fmt.Sprintf("%s/challenge/%d/%s", s.url, n, kind), "token": o.token, "status": authorizationStatus(o)}
	if o.failure != "" {
		out["error"] = map[string]any{"type": "urn:ietf:params:acme:error:unauthorized", "detail": o.failure}
	}
	return out
}

func (s *Server) address(kind string) string {
	return map[string]string{"http-01": s.HTTPAddr, "tls-alpn-01": s.TLSAddr}[kind]
}

// takeChallenge tries a challenge at once. The lock is let go meanwhile, because the client
// may ask for the authorization.
func (s *Server) takeChallenge(w http.ResponseWriter, r *request, n int, o *order) {
	kind := r.PathValue("kind")
	if o.status == "pending" {
		proof := o.token + "." + thumbprint(o.key)
		s.mu.Unlock()
		err := tryChallenge(kind, s.address(kind), o.name, o.token, proof)
		s.mu.Lock()
		if o.status = "ready"; err != nil {
			o.status, o.failure = "invalid", err.Error()
		}
	}
	writeJSON(w, http.StatusOK, s.challengeJSON(n, o, kind))
}

func (s *Server) finalize(w http.ResponseWriter, r *request, n int, o *order) {
	var in struct{ CSR string }
	json.Unmarshal(r.payload, &in)
	der, _ := base64.RawURLEncoding.DecodeString(in.CSR)
	csr, err := x509.ParseCertificateRequest(der)
	if o.status != "ready" || err != nil || csr.CheckSignature() != nil || !slices.Equal(csr.DNSNames, []string{o.name}) {
		problem(w, http.StatusForbidden, "badCSR", "the order is "+o.status+", or the request is not for its name")
		return
	}
	life := s.Life
	if life == 0 {
		life = 90 * 24 * time.Hour
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(n) + 2), DNSNames: csr.DNSNames, NotBefore: time.Now(), NotAfter: time.Now().Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leaf, err := x509.CreateCertificate(rand.Reader, template, s.root, csr.PublicKey, s.key)
	if err != nil {
		problem(w, http.StatusInternalServerError, "serverInternal", err.Error())
		return
	}
	var chain strings.Builder
	pem.Encode(&chain, &pem.Block{Type: "CERTIFICATE", Bytes: leaf})
	pem.Encode(&chain, &pem.Block{Type: "CERTIFICATE", Bytes: s.rootDE})
	o.chain, o.status = []byte(chain.String()), "valid"
	select {
	case s.issued <- o.name:
	default:
	}
	s.showOrder(w, r, n, o)
}

func (s *Server) showCertificate(w http.ResponseWriter, _ *request, _ int, o *order) {
	if o.chain == nil {
		problem(w, http.StatusNotFound, "malformed", "the order is not finalized")
		return
	}
	w.Header().Set("Content-Type", "application/pem-certificate-chain")
	w.Write(o.chain)
}
