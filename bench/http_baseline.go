package main

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"till/internal/dev/loadgen"
)

// baseRequest is the body of a create call.
type baseRequest struct {
	Method         string            `json:"method"`
	Country        string            `json:"country"`
	Amount         baseAmount        `json:"amount"`
	IdempotencyKey string            `json:"idempotency_key"`
	Customer       baseCustomer      `json:"customer"`
	Reference      string            `json:"reference"`
	Description    string            `json:"description"`
	Metadata       map[string]string `json:"metadata"`
}

type baseAmount struct {
	Value    string `json:"value"`
	Currency string `json:"currency"`
}

type baseCustomer struct {
	Phone string  `json:"phone"`
	Name  string  `json:"name"`
	Email *string `json:"email"`
}

// basePayment has the fields of Till's payment object, in its order.
type basePayment struct {
	ID                string            `json:"id"`
	Status            string            `json:"status"`
	Method            string            `json:"method"`
	Country           string            `json:"country"`
	Amount            baseAmount        `json:"amount"`
	Reference         string            `json:"reference"`
	IdempotencyKey    string            `json:"idempotency_key"`
	ProviderReference *string           `json:"provider_reference"`
	FailureReason     *string           `json:"failure_reason"`
	FailureDetail     *string           `json:"failure_detail"`
	Description       string            `json:"description"`
	Customer          baseCustomer      `json:"customer"`
	Charge            *string           `json:"charge"`
	Tax               *string           `json:"tax"`
	Metadata          map[string]string `json:"metadata"`
	CreatedAt         time.Time         `json:"created_at"`
	UpdatedAt         time.Time         `json:"updated_at"`
	ExpiresAt         time.Time         `json:"expires_at"`
	Resolution        baseResolution    `json:"resolution"`
}

type baseResolution struct {
	State         string     `json:"state"`
	LastCheckedAt *time.Time `json:"last_checked_at"`
	NextCheckAt   *time.Time `json:"next_check_at"`
	Attempts      int        `json:"attempts"`
}

// baseCreate is the handler that Till is compared with: what net/http and
// encoding/json cost, and nothing more.
func baseCreate(w http.ResponseWriter, r *http.Request) {
	var req baseRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	b, err := json.Marshal(&basePayment{
		ID: loadgen.NewKey(), Status: "pending", Method: req.Method, Country: req.Country, Amount: req.Amount,
		Reference: req.Reference, IdempotencyKey: req.IdempotencyKey, Description: req.Description,
		Customer: req.Customer, Metadata: req.Metadata,
		CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Minute),
		Resolution: baseResolution{State: "waiting"},
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	w.Write(b)
}

// serveBase is the hidden subcommand.
func serveBase(ctx context.Context, args []string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/payments", baseCreate)
	mux.HandleFunc("GET /v1/payments", emptyList)
	return serveUntil(ctx, args, mux)
}

// emptyList is what says that a server is ready.
func emptyList(w http.ResponseWriter, _ *http.Request) {
	w.Write([]byte(emptyPage))
}

const emptyPage = `{"items":[],"total":0,"limit":1,"offset":0}`
