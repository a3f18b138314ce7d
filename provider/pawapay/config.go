package pawapay

import (
	"strings"
	"time"

	"till/provider"
	"till/provider/wire"
)

// Config is one account at pawaPay. Secrets come from files or the environment:
// api_token_file or api_token_env, signing_key_file or signing_key_env.
type Config struct {
	// BaseURL is https://api.sandbox.pawapay.io or https://api.pawapay.io.
	BaseURL string `toml:"base_url"`
	// APIToken is from the dashboard. The sandbox and the live system have different ones.
	APIToken string `toml:"-" secret:"api_token"`
	// Account distinguishes two accounts at one base URL. It is sent nowhere: the token may
	// change while the account stays.
	Account string `toml:"account"`
	// Company is the name that pawaPay has for the account's company. It is needed only to
	// agree that it is called otherwise than when the connection was first used.
	Company string `toml:"company"`
	// Operations are "payments", "payouts" or both; empty means payments. Payouts must be
	// named, so that they are never on by accident.
	Operations []string `toml:"operations"`
	// Providers extends or replaces rows of the table in routes.go.
	Providers []Route `toml:"provider"`
	// CustomerMessage is what the customer reads if a payment has no description that fits:
	// 4 to 22 letters, digits and spaces.
	CustomerMessage string `toml:"customer_message"`

	// SigningKey is a private key (PEM, EC P-256) that signs each initiation. SigningKeyID
	// is the dashboard's name of its public key.
	SigningKey   string `toml:"-" secret:"signing_key"`
	SigningKeyID string `toml:"signing_key_id"`
	// SignatureEncoding is "der" or "raw". pawaPay's examples sign in DER, RFC 9421 says
	// raw; der is the default.
	SignatureEncoding string `toml:"signature_encoding"`

	// VerifyCallbacks rejects callbacks without a valid signature. Turn it on once signed
	// callbacks are on in the dashboard.
	VerifyCallbacks bool `toml:"verify_callbacks"`
	// CallbackAuthorities are the hosts under which pawaPay calls us, with a port unless it
	// is 443. Empty means the host of the callback URL.
	CallbackAuthorities []string `toml:"callback_authorities"`

	// AuthorizationHosts are further hosts that customers may be sent to in order to approve;
	// their subdomains count. Those of pawaPay and Wave are known.
	AuthorizationHosts []string `toml:"authorization_hosts"`

	// ApprovalWindowSeconds is how long a customer has; 0 means 300. pawaPay does not say:
	// it depends on the operator behind it.
	ApprovalWindowSeconds int `toml:"approval_window_seconds"`
	// SubmitRate and CheckRate are calls per second by all instances. pawaPay
	// publishes no limit; 0 means 100.
	SubmitRate int `toml:"submit_rate"`
	CheckRate  int `toml:"check_rate"`
}

// The limits of what a configuration may hold.
const (
	maxProviders   = 200
	maxAuthorities = 16
	maxCompany     = 100
	defaultMessage = "Mobile payment"
	defaultRate    = 100
)

func (c Config) window() wire.Seconds {
	return wire.Seconds{Key: "approval_window_seconds", Value: c.ApprovalWindowSeconds, Default: 5 * time.Minute, Min: 1, Max: 24 * 60 * 60}
}

// Validate returns every mistake in the configuration, each with its key.
func (c Config) Validate() error {
	var wrong wire.Mistakes
	say := wrong.Add
	wrong.BaseURL(c.BaseURL)
	if c.APIToken == "" || strings.ContainsAny(c.APIToken, " \r\n\t") {
		say("api_token", "give the token of the dashboard, without spaces, by api_token_file or api_token_env")
	}
	if provider.CleanText(strings.TrimSpace(c.Company), maxCompany) != c.Company {
		say("company", "the name as pawaPay writes it, at most %d characters", maxCompany)
	}
	wrong.Operations(c.Operations)
	if len(c.Providers) > maxProviders {
		say("provider", "at most %d rows", maxProviders)
	}
	for i, r := range c.Providers {
		if err := r.validate(); err != nil {
			say("provider", "row %d: %w", i+1, err)
		}
	}
	if c.CustomerMessage != "" && customerMessage(c.CustomerMessage, "") != c.CustomerMessage {
		say("customer_message", "4 to 22 letters, digits and single spaces")
	}
	c.validateSigning(say)
	c.validateHosts(say)
	wrong.Seconds(c.window())
	wrong.Rate("submit_rate", c.SubmitRate)
	wrong.Rate("check_rate", c.CheckRate)
	return wrong.Err()
}

func (c Config) validateSigning(say func(key, format string, args ...any)) {
	if c.SignatureEncoding != "" && c.SignatureEncoding != "der" && c.SignatureEncoding != "raw" {
		say("signature_encoding", "\"der\" or \"raw\"")
	}
	if c.SigningKey != "" {
		if _, err := signingKey(c.SigningKey); err != nil {
			say("signing_key", "%w", err)
		}
	}
	if (c.SigningKey == "") != (c.SigningKeyID == "") {
		say("signing_key_id", "it goes with signing_key, the one is useless without the other")
	}
	if strings.ContainsFunc(c.SigningKeyID, func(r rune) bool { return r < 0x20 || r > 0x7e || r == '"' || r == '\\' }) {
		say("signing_key_id", "plain characters without quotes")
	}
	if len(c.CallbackAuthorities) > maxAuthorities {
		say("callback_authorities", "at most %d", maxAuthorities)
	}
	for _, a := range c.CallbackAuthorities {
		if a == "" || strings.ContainsAny(a, "/ \r\n\t\"") {
			say("callback_authorities", "%q is not a host with or without a port", wire.Truncate(a, 80))
		}
	}
}
