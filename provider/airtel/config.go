package airtel

import (
	"slices"
	"strings"
	"time"

	"till"
	"till/provider/wire"
)

// Config is one application at Airtel in one country. The secrets come from files or the
// environment: client_id_file or client_id_env, and so on.
type Config struct {
	// BaseURL is Airtel's address: https://openapi.airtel.cg in Congo,
	// https://openapiuat.airtel.cg for its tests. Each country has its own.
	BaseURL string `toml:"base_url"`
	// Country and Currency are sent with each call, for example CG and XAF. One connection
	// serves one country.
	Country  string `toml:"country"`
	Currency string `toml:"currency"`
	// Operations are "payments", "payouts" or both; empty means payments. Payouts must be
	// named, so that they are never on by accident.
	Operations []string `toml:"operations"`

	// ClientID and ClientSecret are the application's, from the portal.
	ClientID     string `toml:"-" secret:"client_id"`
	ClientSecret string `toml:"-" secret:"client_secret"`
	// CallbackKey is the private key of the portal's "callback authentication". With it, a
	// callback without a valid hash is rejected.
	CallbackKey string `toml:"-" secret:"callback_key"`

	// PIN is the PIN of the disbursement wallet, four digits.
	PIN string `toml:"-" secret:"pin"`
	// PINPublicKey encrypts the PIN: base64 or PEM of a public key, from the portal.
	PINPublicKey string `toml:"pin_public_key"`
	// PINPadding is "pkcs1v15", "oaep-sha1", "oaep-sha256" or "oaep-sha256-mgf1-sha1".
	// Sources differ by country and year. PKCS #1 v1.5 is in production in Zambia and
	// Congo, so it is the default.
	PINPadding string `toml:"pin_padding"`
	// DisbursementVersion is "v1" or "v2"; "" means v1.
	DisbursementVersion string `toml:"disbursement_version"`

	// SignMessages signs each request for money (Airtel's version 2). It must be on in
	// Zambia, and off elsewhere unless Airtel says otherwise.
	SignMessages bool `toml:"sign_messages"`

	// ApprovalWindowSeconds is how long a customer has to type the PIN. Airtel does not
	// say; 0 means 480. Below 420, a lost request is not sent again, but fails; see
	// traitsOf.
	ApprovalWindowSeconds int `toml:"approval_window_seconds"`
}

func (c Config) window() wire.Seconds {
	return wire.Seconds{Key: "approval_window_seconds", Value: c.ApprovalWindowSeconds, Default: 480 * time.Second, Min: 1, Max: 24 * 60 * 60}
}

// serves reports whether an operation is configured.
func (c Config) serves(operation string) bool {
	return slices.Contains(c.Operations, operation) || operation == "payments" && len(c.Operations) == 0
}

// Validate returns every mistake in the configuration, each with its key.
func (c Config) Validate() error {
	var wrong wire.Mistakes
	say := wrong.Add
	wrong.BaseURL(c.BaseURL)
	if _, ok := till.CountryOf(c.Country); !ok {
		say("country", "give the two letters of the country, such as CG")
	}
	if _, ok := till.CurrencyDecimals(c.Currency); !ok {
		say("currency", "give the three letters of the currency, such as XAF")
	}
	wrong.Operations(c.Operations)
	if c.ClientID == "" {
		say("client_id", "give the client id of the portal by client_id_file or client_id_env")
	}
	if c.ClientSecret == "" {
		say("client_secret", "give the client secret of the portal by client_secret_file or client_secret_env")
	}
	wrong.Secret("client_id", c.ClientID)
	wrong.Secret("client_secret", c.ClientSecret)
	wrong.Secret("callback_key", c.CallbackKey)
	wrong.Secret("pin", c.PIN)
	c.validatePayouts(say)
	wrong.Seconds(c.window())
	return wrong.Err()
}

func (c Config) validatePayouts(say func(key, format string, args ...any)) {
	if _, ok := paddings[c.PINPadding]; !ok {
		say("pin_padding", "\"pkcs1v15\", \"oaep-sha1\", \"oaep-sha256\" or \"oaep-sha256-mgf1-sha1\"")
	}
	if c.DisbursementVersion != "" && c.DisbursementVersion != "v1" && c.DisbursementVersion != "v2" {
		say("disbursement_version", "\"v1\" or \"v2\"")
	}
	if !c.serves("payouts") {
		return
	}
	if len(c.PIN) != 4 || strings.Trim(c.PIN, "0123456789") != "" {
		say("pin", "payouts need the four digits of the wallet's PIN, by pin_file or pin_env")
	}
	if key, err := publicKey(c.PINPublicKey); err != nil {
		say("pin_public_key", "%w", err)
	} else if pad, ok := paddings[c.PINPadding]; ok {
		if _, err := pad(key, []byte("0000")); err != nil {
			say("pin_padding", "it does not fit the key: %w", err)
		}
	}
}
