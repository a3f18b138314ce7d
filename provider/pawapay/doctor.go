package pawapay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"till"
	"till/provider"
	"till/provider/wire"
)

// activeConf is what the account may do: GET /v2/active-conf.
type activeConf struct {
	CompanyName            wire.Text `json:"companyName"`
	SignatureConfiguration struct {
		SignedRequestsOnly bool `json:"signedRequestsOnly"`
		SignedCallbacks    bool `json:"signedCallbacks"`
	} `json:"signatureConfiguration"`
	Countries []struct {
		Country   wire.Text `json:"country"`
		Providers []struct {
			Provider                wire.Text `json:"provider"`
			NameDisplayedToCustomer wire.Text `json:"nameDisplayedToCustomer"`
			Currencies              []struct {
				Currency       wire.Text       `json:"currency"`
				OperationTypes json.RawMessage `json:"operationTypes"` // a map or a list: both occur
			} `json:"currencies"`
		} `json:"providers"`
	} `json:"countries"`
}

// operation is one operation of a provider.
type operation struct {
	OperationType wire.Text       `json:"operationType"`
	Status        wire.Text       `json:"status"`
	AuthType      wire.Text       `json:"authType"`
	Decimals      wire.Text       `json:"decimalsInAmount"`
	Min           wire.Text       `json:"minAmount"`
	Max           wire.Text       `json:"maxAmount"`
	OldMin        wire.Text       `json:"minTransactionLimit"` // the bounds in one of pawaPay's samples
	OldMax        wire.Text       `json:"maxTransactionLimit"`
	Instructions  json.RawMessage `json:"pinPromptInstructions"`
}

// operations reads operationTypes in either form.
func operations(raw json.RawMessage) map[string]operation {
	out, _ := readOperations(raw)
	return out
}

// readOperations is operations, with what is wrong.
func readOperations(raw json.RawMessage) (map[string]operation, error) {
	out := map[string]operation{}
	if err := json.Unmarshal(raw, &out); err == nil {
		return out, nil
	}
	var list []operation
	if json.Unmarshal(raw, &list) != nil {
		return nil, errors.New("operations that cannot be read")
	}
	out = map[string]operation{}
	for _, op := range list {
		out[string(op.OperationType)] = op
	}
	return out, nil
}

// readConf reads what the account may do.
func (s *service) readConf(ctx context.Context) (*activeConf, error) {
	reply, err := s.callUpTo(ctx, maxConf, http.MethodGet, "/v2/active-conf", nil)
	if later := wire.RateLimitedTest("pawaPay", err); later != nil {
		return nil, later
	}
	if err != nil {
		return nil, fmt.Errorf("pawaPay cannot be reached at %s: %w. Check base_url and this server's connection to the Internet", s.base, err)
	}
	if err := explainStatus(reply.Status); err != nil {
		return nil, err
	}
	conf, err := decodeConf(reply.Body)
	if err != nil {
		return nil, fmt.Errorf("the server at %s does not answer like pawaPay: %w. Check base_url", s.base, err)
	}
	return conf, nil
}

func decodeConf(body []byte) (*activeConf, error) {
	var conf activeConf
	if err := wire.Decode(body, &conf); err != nil {
		return nil, err
	}
	return &conf, nil
}

// company returns the name of the account's company.
func (conf *activeConf) company() string {
	return provider.CleanText(strings.TrimSpace(string(conf.CompanyName)), maxCompany)
}

// Company implements provider.CompanyReader.
func (s *service) Company(ctx context.Context) (name string, agreed bool, err error) {
	conf, err := s.readConf(ctx)
	if err != nil {
		return "", false, err
	}
	return conf.company(), s.c.Company != "", s.checkCompany(conf)
}

// checkCompany compares the account's company with that of the configuration.
func (s *service) checkCompany(conf *activeConf) error {
	if name := conf.company(); s.c.Company != "" && name != s.c.Company {
		return provider.OtherCompany{Told: name, Want: s.c.Company}
	}
	return nil
}

// Test reads what the account may do and compares it with the configuration. No money
// moves.
func (s *service) Test(ctx context.Context) error {
	conf, err := s.readConf(ctx)
	if err != nil {
		return err
	}
	if err := s.checkAccount(conf); err != nil {
		return err
	}
	if s.kind != &payouts {
		return nil
	}
	reply, err := s.call(ctx, http.MethodGet, "/v2/wallet-balances", nil)
	if err != nil {
		return fmt.Errorf("pawaPay does not return the wallets' balances: %w", err)
	}
	if err := explainStatus(reply.Status); err != nil {
		return err
	}
	var wallets struct {
		Balances []struct {
			Balance wire.Text `json:"balance"`
		} `json:"balances"`
	}
	if err := wire.Decode(reply.Body, &wallets); err != nil || len(wallets.Balances) == 0 {
		return errors.New("the account has no wallet to pay out from. Ask pawaPay to open one")
	}
	return nil
}

// TestRefunds reads whether the account may refund.
func (s *service) TestRefunds(ctx context.Context) error {
	conf, err := s.readConf(ctx)
	if err != nil {
		return err
	}
	for _, country := range conf.Countries {
		for _, p := range country.Providers {
			for _, c := range p.Currencies {
				if _, ok := operations(c.OperationTypes)[refunds.operation]; ok {
					return nil
				}
			}
		}
	}
	return fmt.Errorf("the account has no provider for %s. Ask pawaPay to activate refunds, or write refunds = \"payout\" into the connection", refunds.operation)
}

// CheckCallback reports whether signatures of callbacks to an address could be valid: a
// signature covers the host that pawaPay called.
func (s *service) CheckCallback(address string) error {
	if !s.c.VerifyCallbacks || len(s.c.CallbackAuthorities) == 0 || address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	if host := authority(u); !slices.Contains(s.callbackHosts, host) {
		return fmt.Errorf("verify_callbacks is on and callback_authorities does not name %q, the host of the service's address: every callback would be refused", host)
	}
	return nil
}

// explainStatus says why pawaPay refuses access.
func explainStatus(status int) error {
	switch err := statusError(status); {
	case err == nil:
		return nil
	case errors.Is(err, provider.ErrCredentials):
		return fmt.Errorf("pawaPay refuses the API token: %w. Make a new one in the dashboard of this environment: "+
			"the sandbox and the live system have different ones", err)
	default:
		return fmt.Errorf("pawaPay answers %w. Try again later, and ask its support if it stays so", err)
	}
}

// checkAccount compares what the account may do with the configuration.
func (s *service) checkAccount(conf *activeConf) error {
	if err := s.checkCompany(conf); err != nil {
		return err
	}
	if conf.SignatureConfiguration.SignedRequestsOnly && s.signer == nil {
		return errors.New("the account accepts signed requests only. Configure signing_key and signing_key_id, or turn it off in the dashboard")
	}
	if !conf.SignatureConfiguration.SignedCallbacks && s.c.VerifyCallbacks {
		return errors.New("verify_callbacks is on, but the account's callbacks are not signed. Turn signed callbacks on in the dashboard")
	}
	if s.c.VerifyCallbacks && len(s.callbackHosts) == 0 {
		return fmt.Errorf("verify_callbacks is on: %w", errNoAuthority)
	}
	decimals := map[string]string{} // decimalsInAmount by provider and currency
	for _, country := range conf.Countries {
		for _, p := range country.Providers {
			for _, c := range p.Currencies {
				if op, ok := operations(c.OperationTypes)[s.kind.operation]; ok {
					decimals[string(p.Provider)+" "+string(c.Currency)] = string(op.Decimals)
				}
			}
		}
	}
	if len(decimals) == 0 {
		return fmt.Errorf("the account has no provider for %s. Ask pawaPay to activate those of your countries", s.kind.operation)
	}
	var wrong []string
	for key, has := range decimals {
		for _, r := range s.routes {
			if iso, _ := till.CurrencyDecimals(r.Currency); iso == 0 || r.Code+" "+r.Currency != key {
				continue
			}
			if want := r.decimals(s.kind); has == "NONE" && want > 0 || has == "TWO_PLACES" && want == 0 {
				wrong = append(wrong, fmt.Sprintf("%s takes %s decimals, configured are %d", key, strings.ToLower(has), want))
			}
		}
	}
	for _, r := range s.c.Providers { // each configured provider must be there
		if _, ok := decimals[r.Code+" "+r.Currency]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s with %s is configured, but the account has no such provider for %s", r.Code, r.Currency, s.kind.operation))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return errors.New(strings.Join(wrong, "; ") + ". Correct the [[connection.pawapay.provider]] rows")
	}
	return nil
}
