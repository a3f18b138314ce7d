package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"till"
	"till/provider"
)

// The operator of the benchmark is a process of its own, reached by HTTP. It
// takes every request at once, and its customers approve at once: what is
// measured is Till's work, not a wait.

// maxHeld is how many requests the operator remembers.
const maxHeld = 10_000_000

// operatorRequest is what Till sends it.
type operatorRequest struct {
	Reference string `json:"reference"`
	Phone     string `json:"phone"`
	Amount    string `json:"amount"`
	Currency  string `json:"currency"`
}

// operatorAnswer is what it says.
type operatorAnswer struct {
	Status  string `json:"status"`
	Receipt string `json:"receipt,omitempty"`
}

// serveOperator is the hidden subcommand.
func serveOperator(ctx context.Context, args []string) error {
	var mu sync.Mutex
	held := map[till.ID]bool{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /requests", func(w http.ResponseWriter, r *http.Request) {
		var q operatorRequest
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&q)
		id, bad := till.ParseID(q.Reference)
		if err != nil || bad != nil {
			http.Error(w, "not a request", http.StatusBadRequest)
			return
		}
		mu.Lock()
		full := len(held) >= maxHeld
		if !full {
			held[id] = true
		}
		mu.Unlock()
		if full {
			http.Error(w, "too many", http.StatusServiceUnavailable)
			return
		}
		answer(w, http.StatusAccepted, operatorAnswer{Status: "ACCEPTED"})
	})
	mux.HandleFunc("GET /requests/{reference}", func(w http.ResponseWriter, r *http.Request) {
		id, err := till.ParseID(r.PathValue("reference"))
		mu.Lock()
		known := err == nil && held[id]
		mu.Unlock()
		if !known {
			answer(w, http.StatusNotFound, operatorAnswer{Status: "NOT_FOUND"})
			return
		}
		answer(w, http.StatusOK, operatorAnswer{Status: "APPROVED", Receipt: receiptOf(id)})
	})
	mux.HandleFunc("GET /v1/payments", emptyList)
	return serveUntil(ctx, args, mux)
}

func answer(w http.ResponseWriter, status int, a operatorAnswer) {
	b, _ := json.Marshal(a) // strings always marshal
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(b)
}

func receiptOf(reference till.ID) string { return fmt.Sprintf("BEN%X", reference[:]) }

// successOf is the operator's word that a payment succeeded.
func successOf(reference till.ID) provider.Result {
	return provider.Result{Outcome: provider.Success, Code: "APPROVED", Reference: reference.String(), Receipt: receiptOf(reference)}
}

// wallets is the adapter to this operator, as Till would have one.
type wallets struct {
	base   string
	client *http.Client
}

var _ provider.Provider = (*wallets)(nil)

func newWallets(base string) *wallets {
	return &wallets{base: base, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, IdleConnTimeout: time.Minute}}}
}

// Submit implements provider.Provider.
func (o *wallets) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	body, err := json.Marshal(operatorRequest{r.Reference.String(), r.Phone, r.Amount.Value(), r.Amount.Currency})
	if err != nil {
		return provider.Result{}, err
	}
	status, a, err := o.call(ctx, http.MethodPost, "/requests", body)
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("the operator answered %d", status)
	}
	if err != nil {
		return provider.Result{}, err
	}
	return provider.Result{Outcome: provider.Accepted, Code: a.Status, Reference: r.Reference.String()}, nil
}

// Check implements provider.Provider.
func (o *wallets) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	status, a, err := o.call(ctx, http.MethodGet, "/requests/"+q.Reference.String(), nil)
	switch {
	case err != nil:
		return provider.Result{}, err
	case status == http.StatusNotFound:
		return provider.Result{Outcome: provider.NotFound, Code: a.Status}, nil
	case status != http.StatusOK || a.Status != "APPROVED":
		return provider.Result{}, fmt.Errorf("the operator answered %d %s", status, a.Status)
	}
	return successOf(q.Reference), nil
}

func (o *wallets) call(ctx context.Context, method, path string, body []byte) (status int, a operatorAnswer, err error) {
	req, err := http.NewRequestWithContext(ctx, method, o.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, a, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := o.client.Do(req)
	if err != nil {
		return 0, a, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	return resp.StatusCode, a, err
}

// Traits implements provider.Provider.
func (*wallets) Traits() provider.Traits {
	return provider.Traits{
		ClientReference: true, ApprovalWindow: 2 * time.Minute, SubmitTimeout: 5 * time.Second, CheckTimeout: 5 * time.Second,
		Settle: 500 * time.Millisecond, Poll: 100 * time.Millisecond, PollMax: time.Hour, Grace: time.Minute,
	}
}

// Fingerprint implements provider.Provider.
func (*wallets) Fingerprint() string { return "bench" }
