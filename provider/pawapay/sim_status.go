package pawapay

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"till"
	"till/provider"
	"till/provider/simulator"
)

// simRecord is the state of a deposit, payout or refund.
type simRecord struct {
	RefundID              string            `json:"refundId,omitempty"`
	DepositID             string            `json:"depositId,omitempty"`
	PayoutID              string            `json:"payoutId,omitempty"`
	Status                string            `json:"status"`
	Amount                string            `json:"amount"`
	Currency              string            `json:"currency"`
	Country               string            `json:"country"`
	Payer                 *party            `json:"payer,omitempty"`
	Recipient             *party            `json:"recipient,omitempty"`
	CustomerMessage       string            `json:"customerMessage,omitempty"`
	ClientReferenceID     string            `json:"clientReferenceId,omitempty"`
	Created               string            `json:"created"`
	ProviderTransactionID string            `json:"providerTransactionId,omitempty"`
	FailureReason         *simReason        `json:"failureReason,omitempty"`
	Metadata              map[string]string `json:"metadata,omitempty"`
	NextStep              string            `json:"nextStep,omitempty"`
	SuccessfulURL         string            `json:"successfulUrl,omitempty"`
	FailedURL             string            `json:"failedUrl,omitempty"`
	AuthorizationURL      string            `json:"authorizationUrl,omitempty"`
}

// record writes an entry in pawaPay's words.
func (s *Simulator) record(e *simulator.Entry, k *serviceKind) *simRecord {
	var data simData
	json.Unmarshal([]byte(e.Data), &data)
	r := &simRecord{Status: "PROCESSING", Amount: simMoney(e.Amount), Currency: e.Currency, Country: simCountry(data.Provider),
		CustomerMessage: data.Message, ClientReferenceID: data.Reference, Created: e.At.UTC().Format(time.RFC3339)}
	who := &party{"MMO", account{e.Phone, data.Provider}}
	switch k {
	case &refunds:
		r.RefundID, r.Recipient = e.Reference, who
	case &payouts:
		r.PayoutID, r.Recipient = e.Reference, who
	default:
		r.DepositID, r.Payer = e.Reference, who
	}
	switch state, code := s.stateOf(e); state {
	case simulator.Success:
		r.Status, r.ProviderTransactionID = "COMPLETED", e.Receipt
	case simulator.Failed, simulator.Expired:
		r.Status, r.FailureReason = "FAILED", &simReason{code, "The " + simKind(k) + " has failed."}
	default:
		if e.At.Equal(s.book.Now()) {
			r.Status = "ACCEPTED"
		} else if s.delayed(data.Provider, k) {
			r.Status = "ENQUEUED"
		}
	}
	for _, raw := range data.Metadata { // pawaPay repeats it flat
		var item map[string]any
		json.Unmarshal(raw, &item)
		for name, value := range item {
			if text, ok := value.(string); ok {
				if r.Metadata == nil {
					r.Metadata = map[string]string{}
				}
				r.Metadata[name] = text
			}
		}
	}
	return r
}

// simMoney writes an amount with two decimals, as pawaPay does whatever the
// currency.
func simMoney(amount string) string {
	whole, part, _ := strings.Cut(amount, ".")
	for len(part) < 2 {
		part += "0"
	}
	return whole + "." + part
}

// simCountry is the end of a provider's name: COG, KEN.
func simCountry(provider string) string { return provider[strings.LastIndexByte(provider, '_')+1:] }

func (s *Simulator) status(w http.ResponseWriter, r *http.Request, k *serviceKind) {
	e, found := s.book.Find(simKind(k), r.PathValue("id"))
	if !found {
		simJSON(w, http.StatusOK, map[string]string{"status": "NOT_FOUND"})
		return
	}
	record := s.record(&e, k)
	s.showAddress(record, &e, simHost(r))
	simJSON(w, http.StatusOK, map[string]any{"status": "FOUND", "data": record})
}

func (s *Simulator) resend(w http.ResponseWriter, r *http.Request, k *serviceKind) {
	id := r.PathValue("id")
	answer := map[string]any{k.id: id, "status": "ACCEPTED"}
	if _, found := s.book.Find(simKind(k), id); found {
		s.sendCallback(k, id, 0)
	} else {
		answer["status"], answer["failureReason"] = "REJECTED", simReason{"NOT_FOUND", "There is none of that id."}
	}
	simJSON(w, http.StatusOK, answer)
}

// sendCallback notifies the caller how a request has ended, when it has.
func (s *Simulator) sendCallback(k *serviceKind, id string, after time.Duration) {
	target := map[*serviceKind]string{&deposits: s.c.DepositCallback, &payouts: s.c.PayoutCallback, &refunds: s.c.RefundCallback}[k]
	if target == "" {
		return
	}
	s.callbacks.Send(after, s.c.CallbackRetries, func() *http.Request {
		e, found := s.book.Find(simKind(k), id)
		if state, _ := s.stateOf(&e); !found || state == simulator.Open {
			return nil
		}
		record := s.record(&e, k)
		record.ClientReferenceID = "" // a callback does not repeat it
		body, _ := json.Marshal(record)
		r := simulator.Post(http.MethodPost, target, body)
		if r != nil && s.c.SignCallbacks {
			s.sign(r, body)
		}
		return r
	})
}

// simKeyID is what the simulator's key is called.
const simKeyID = "HTTP_EC_P256_KEY:1"

func newSimKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// sign signs a callback as pawaPay does.
func (s *Simulator) sign(r *http.Request, body []byte) {
	sum := sha512.Sum512(body)
	now := s.book.Now()
	r.Header.Set("Content-Digest", "sha-512=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	r.Header.Set("Signature-Date", now.UTC().Format("2006-01-02T15:04:05.000000Z"))
	params := fmt.Sprintf(`("@method" "@authority" "@path" "signature-date" "content-digest" "content-type");alg="ecdsa-p256-sha256";keyid="%s";created=%d;expires=%d`,
		simKeyID, now.Unix(), now.Add(time.Minute).Unix())
	text := strings.Join([]string{
		`"@method": ` + r.Method, `"@authority": ` + authority(r.URL), `"@path": ` + r.URL.EscapedPath(),
		`"signature-date": ` + r.Header.Get("Signature-Date"), `"content-digest": ` + r.Header.Get("Content-Digest"),
		`"content-type": ` + r.Header.Get("Content-Type"), `"@signature-params": ` + params,
	}, "\n")
	hash := sha256.Sum256([]byte(text))
	sig, err := ecdsa.SignASN1(rand.Reader, s.signer, hash[:])
	if s.c.RawSignatures {
		a, b, failed := ecdsa.Sign(rand.Reader, s.signer, hash[:])
		sig, err = append(a.FillBytes(make([]byte, 32)), b.FillBytes(make([]byte, 32))...), failed
	}
	if err != nil {
		return
	}
	r.Header.Set("Signature-Input", sigLabel+"="+params)
	r.Header.Set("Signature", sigLabel+"=:"+base64.StdEncoding.EncodeToString(sig)+":")
}

// checkClient refuses an initiation without the caller's signature.
func (s *Simulator) checkClient(r *http.Request, body []byte) error {
	c := provider.CallbackRequest{Method: r.Method, URL: "http://" + r.Host + r.URL.RequestURI(), Header: r.Header, Body: body}
	in, err := parseSignatureInput(header(c, "Signature-Input"))
	if err != nil {
		return err
	}
	sig, err := parseSignature(header(c, "Signature"))
	if err != nil {
		return err
	}
	if err := errors.Join(in.checkFresh(s.book.Now()), checkDigest(header(c, "Content-Digest"), body)); err != nil {
		return err
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return err
	}
	base, err := in.signatureBase(c, authority(u))
	if err != nil {
		return err
	}
	if in.keyID != s.c.ClientKeyID || !slices.Contains(in.components, "content-digest") || !checkSignature(s.client, in.alg, []byte(base), sig) {
		return errors.New("The signature is invalid.")
	}
	return nil
}

func (s *Simulator) publicKeys(w http.ResponseWriter, _ *http.Request) {
	der, err := x509.MarshalPKIXPublicKey(&s.signer.PublicKey)
	if err != nil {
		simError(w, http.StatusInternalServerError, "UNKNOWN_ERROR", err.Error())
		return
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	simJSON(w, http.StatusOK, []map[string]string{{"id": simKeyID, "key": string(bytes.TrimSpace(text))}})
}

func (s *Simulator) activeConf(w http.ResponseWriter, _ *http.Request) {
	places := map[int]string{0: "NONE", 2: "TWO_PLACES"}
	countries := map[string][]any{}
	for i := range defaultRoutes {
		r := &defaultRoutes[i]
		ops := map[string]any{}
		for _, k := range []*serviceKind{&deposits, &payouts, &refunds} {
			m := s.market(r.Code, k)
			if m.Status == simLacking {
				continue
			}
			op := map[string]any{"minAmount": m.Min, "maxAmount": m.Max, "decimalsInAmount": places[r.decimals(k)], "status": m.Status}
			if k == &deposits {
				op["authType"], op["pinPrompt"], op["pinPromptRevivable"] = simAuth[r.flow()], "AUTOMATIC", true
				op["pinPromptInstructions"] = simInstructions
			}
			ops[k.operation] = op
		}
		if len(ops) == 0 {
			continue
		}
		code := simCountry(r.Code)
		countries[code] = append(countries[code], map[string]any{"provider": r.Code, "nameDisplayedToCustomer": simShown, "currencies": []any{map[string]any{
			"currency": r.Currency, "operationTypes": ops}}})
	}
	var list []any
	for code, providers := range countries {
		list = append(list, map[string]any{"country": code, "providers": providers})
	}
	simJSON(w, http.StatusOK, map[string]any{"companyName": s.c.Company, "countries": list,
		"signatureConfiguration": map[string]bool{"signedRequestsOnly": s.client != nil, "signedCallbacks": s.c.SignCallbacks}})
}

func (s *Simulator) availability(w http.ResponseWriter, _ *http.Request) {
	var list []any
	for i := range defaultRoutes {
		r, ops := &defaultRoutes[i], []any{}
		for _, k := range []*serviceKind{&deposits, &payouts, &refunds} {
			if m := s.market(r.Code, k); m.Status != simLacking {
				ops = append(ops, map[string]string{"operationType": k.operation, "status": m.Status})
			}
		}
		list = append(list, map[string]any{"country": simCountry(r.Code), "providers": []any{map[string]any{"provider": r.Code, "operationTypes": ops}}})
	}
	simJSON(w, http.StatusOK, list)
}

func (s *Simulator) balances(w http.ResponseWriter, _ *http.Request) {
	var list []any
	for _, c := range []struct{ country, currency string }{{"COG", "XAF"}, {"CMR", "XAF"}, {"KEN", "KES"}, {"UGA", "UGX"}} {
		amount := "21798.03"
		if n, _ := till.CurrencyDecimals(c.currency); n == 0 {
			amount = "21798.00"
		}
		if s.c.OutOfFunds {
			amount = "0.00"
		}
		list = append(list, map[string]string{"country": c.country, "currency": c.currency, "balance": amount, "provider": ""})
	}
	simJSON(w, http.StatusOK, map[string]any{"balances": list})
}
