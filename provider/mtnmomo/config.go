package mtnmomo

import (
	"net/url"
	"strings"
	"time"

	"till"
	"till/provider/wire"
)

// Config is one account at MTN in one country. The secrets come from files or the
// environment: api_key_file or api_key_env, and so on.
type Config struct {
	// BaseURL is MTN's address: https://sandbox.momodeveloper.mtn.com,
	// https://proxy.momoapi.mtn.com (the old platform) or https://momoapi.momo.africa (the
	// new one).
	BaseURL string `toml:"base_url"`
	// TargetEnvironment names the country to MTN: mtncongo, mtnuganda, sandbox.
	TargetEnvironment string `toml:"target_environment"`

	// APIUser and APIKey are from the Partner Portal: an API user with its key on the old
	// platform, a User ID with its Credential Token on the new one. They may be any text;
	// the new platform's are no UUIDs.
	APIUser string `toml:"-" secret:"api_user"`
	APIKey  string `toml:"-" secret:"api_key"`
	// CollectionKey and DisbursementKey are the subscription keys of the two
	// products. A product without one is not served.
	CollectionKey   string `toml:"-" secret:"collection_subscription_key"`
	DisbursementKey string `toml:"-" secret:"disbursement_subscription_key"`
	// DisbursementUser and DisbursementSecret are for accounts with a separate user for
	// disbursements; "" means the same user as for collections.
	DisbursementUser   string `toml:"-" secret:"disbursement_api_user"`
	DisbursementSecret string `toml:"-" secret:"disbursement_api_key"`

	// CallbackHost is the host that is registered with MTN for callbacks. MTN rejects a
	// request with another host, so without it no callback address is sent.
	CallbackHost string `toml:"callback_host"`
	// CurrencyOverride is for MTN's sandbox, which accepts only EUR. Amounts are sent in
	// it, and read back in the payment's own currency. It is rejected outside the sandbox.
	CurrencyOverride string `toml:"currency_override"`

	// ApprovalWindowSeconds is how long a customer has to type the PIN; 0 means MTN's five
	// minutes. A payment keeps the window that it was created with.
	ApprovalWindowSeconds int `toml:"approval_window_seconds" json:",omitempty"`
	// PollSeconds is how often an open payment is checked; 0 means 12.
	PollSeconds int `toml:"poll_seconds" json:",omitempty"`
	// SettleSeconds is how long after a send, and after the first "not found", another "not
	// found" proves nothing; 0 means 120. If it is too short, a request that MTN shows late
	// counts as lost. Then it is sent again, which MTN notices. Or a payout's reserve is
	// released, which nobody notices.
	SettleSeconds int `toml:"settle_seconds" json:",omitempty"`
}

// The bounds of the times. A "404 right after a 202" must be over within a minute
// [unverified: MTN names no time]. Two reads are at least that far apart.
func (c Config) window() wire.Seconds {
	return wire.Seconds{Key: "approval_window_seconds", Value: c.ApprovalWindowSeconds, Default: 5 * time.Minute, Min: 60, Max: 24 * 60 * 60}
}

func (c Config) poll(otherwise time.Duration) wire.Seconds {
	return wire.Seconds{Key: "poll_seconds", Value: c.PollSeconds, Default: otherwise, Min: 5, Max: 60}
}

func (c Config) settle() wire.Seconds {
	return wire.Seconds{Key: "settle_seconds", Value: c.SettleSeconds, Default: 2 * time.Minute, Min: 60, Max: 60 * 60}
}

// The default intervals between checks.
const (
	paymentPoll = 12 * time.Second // integrators use 10 to 15 s; a callback comes once or never
	payoutPoll  = 10 * time.Second // no customer approves: a transfer is decided in seconds
)

// validateTimes rejects times out of bounds, and a window in which a lost payment could
// never be sent again.
func (c Config) validateTimes(wrong *wire.Mistakes) {
	window, poll, settle := c.window(), c.poll(paymentPoll), c.settle()
	fine := wrong.Seconds(window, poll, settle)
	if need := wire.TimeToProveLost(settle.Duration(), poll.Duration()); fine && window.Duration() < need {
		wrong.Add(window.Key, "with these settle_seconds and poll_seconds at least %d, or a payment that was lost could never be sent again", int(need.Seconds()))
	}
}

// sandboxEnvironment is the target environment of MTN's sandbox.
const sandboxEnvironment = "sandbox"

// Validate returns every mistake in the configuration, each with its key.
func (c Config) Validate() error {
	var wrong wire.Mistakes
	say := wrong.Add
	wrong.BaseURL(c.BaseURL)
	if !isAlphanumeric(c.TargetEnvironment) {
		say("target_environment", "give MTN's name of the country, such as mtncongo, or sandbox")
	}
	if c.APIUser == "" || strings.Contains(c.APIUser, ":") {
		say("api_user", "give the API user (old platform) or the User ID (new platform), without a colon, by api_user_file or api_user_env")
	}
	if c.APIKey == "" {
		say("api_key", "give the API key (old platform) or the Credential Token (new platform) by api_key_file or api_key_env")
	}
	if c.CollectionKey == "" && c.DisbursementKey == "" {
		say("collection_subscription_key", "give the subscription key of Collections, or disbursement_subscription_key for Disbursements, or both")
	}
	if (c.DisbursementUser == "") != (c.DisbursementSecret == "") {
		say("disbursement_api_user", "it goes with disbursement_api_key, the one is useless without the other")
	}
	for _, s := range []struct{ key, text string }{
		{"api_user", c.APIUser}, {"api_key", c.APIKey},
		{"collection_subscription_key", c.CollectionKey}, {"disbursement_subscription_key", c.DisbursementKey},
		{"disbursement_api_user", c.DisbursementUser}, {"disbursement_api_key", c.DisbursementSecret},
	} {
		wrong.Secret(s.key, s.text)
	}
	if c.CallbackHost != "" {
		if u, err := url.Parse("https://" + c.CallbackHost); err != nil || u.Host != c.CallbackHost || u.Port() != "" {
			say("callback_host", "a host name alone, without scheme, port and path")
		}
	}
	if c.CurrencyOverride != "" {
		if _, ok := till.CurrencyDecimals(c.CurrencyOverride); !ok {
			say("currency_override", "%q is no currency that is known", wire.Truncate(c.CurrencyOverride, 10))
		}
		if c.TargetEnvironment != sandboxEnvironment {
			say("currency_override", "only with target_environment = \"sandbox\": real money has its own currency")
		}
	}
	c.validateTimes(&wrong)
	return wrong.Err()
}

// isAlphanumeric reports whether a text has only letters and digits, like the names of
// environments.
func isAlphanumeric(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	})
}
