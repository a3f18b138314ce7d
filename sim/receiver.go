package sim

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"

	"till/internal/db/dbfault"
	"till/webhook"
)

// receiver is the client's server for webhooks: it verifies, keeps a book, and answers.
type receiver struct {
	w    *World
	stop func()

	mu      sync.Mutex
	secrets []webhook.Secret
	refuse  int // so many deliveries are answered 500
	book    map[int64]receipt
	last    map[string]receipt // by payment or payout
	forged  int
}

// receipt is one event that arrived.
type receipt struct {
	ID, Type string
	Sequence int64
	Data     struct {
		Payment, Payout, Refund *struct{ ID, Status string }
	}
}

func (r *receipt) subject() (id, status string) {
	switch {
	case r.Data.Payment != nil:
		return r.Data.Payment.ID, r.Data.Payment.Status
	case r.Data.Payout != nil:
		return r.Data.Payout.ID, r.Data.Payout.Status
	case r.Data.Refund != nil:
		return r.Data.Refund.ID, r.Data.Refund.Status
	}
	return "", ""
}

const receiverAddr = "93.184.216.34:443"

// receiverCertificate is one for all worlds of a process. It is valid at the beginning of
// virtual time.
var receiverCertificate = sync.OnceValue(func() *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "shop"}, IPAddresses: []net.IP{net.IPv4(93, 184, 216, 34)},
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
})

func receiverRoots() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(receiverCertificate().Leaf)
	return p
}

// dialReceiver returns how an instance connects to receivers.
func (w *World) dialReceiver(i *instance) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		if w.effect(i, "dial "+w.net.name(addr)) != dbfault.None || i.isDead() {
			return nil, errRefused
		}
		c, _, err := w.net.connect(ctx, addr)
		if err != nil {
			return nil, err
		}
		return i.hold(c), nil
	}
}

// OpenShop registers an endpoint for all events of the client.
func (w *World) OpenShop() {
	r := &receiver{w: w, book: map[int64]receipt{}, last: map[string]receipt{}}
	r.stop = w.net.serve("shop", receiverAddr, r, receiverCertificate())
	w.shop = r
	var made struct{ ID, Secret string }
	w.create("/webhook-endpoints", `{"url":"https://93.184.216.34/hooks","events":["*"]}`, &made)
	s, err := webhook.ParseSecret(made.Secret)
	if err != nil {
		w.T.Fatal(err)
	}
	r.secrets = append(r.secrets, s)
}

// ServeHTTP takes a delivery. That it comes in and that it is answered are effects, too,
// of an instance that serves: what is encrypted cannot be cut at its edges.
func (r *receiver) ServeHTTP(rw http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if i := r.w.up(); err != nil || i == nil || r.w.effect(i, "request shop "+q.Method) != dbfault.None {
		panic(http.ErrAbortHandler)
	}
	r.take(rw, q, body)
	if i := r.w.up(); i == nil || r.w.effect(i, "answer shop "+q.Method) != dbfault.None {
		panic(http.ErrAbortHandler)
	}
}

func (r *receiver) take(rw http.ResponseWriter, q *http.Request, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse > 0 {
		r.refuse--
		rw.WriteHeader(http.StatusInternalServerError)
		return
	}
	var e receipt
	if err := webhook.Verify(q.Header, body, time.Now(), webhook.Tolerance, r.secrets...); err != nil {
		r.forged++
		rw.WriteHeader(http.StatusUnauthorized)
		return
	}
	if err := json.Unmarshal(body, &e); err != nil {
		r.w.T.Errorf("an event cannot be read: %v", err)
	}
	r.book[e.Sequence] = e
	if id, _ := e.subject(); r.last[id].Sequence <= e.Sequence {
		r.last[id] = e
	}
	rw.WriteHeader(http.StatusOK)
}
