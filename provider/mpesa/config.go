package mpesa

import (
	"net/url"
	"strings"
	"time"

	"till/provider"
	"till/provider/wire"
)

// Config is one app at Daraja with its short codes. Secrets come from files or the
// environment: <key>_file or <key>_env.
//
// One app is one connection. Each new token ends the one before, so two connections with
// the same consumer key would invalidate each other's tokens.
type Config struct {
	// BaseURL is https://sandbox.safaricom.co.ke or https://api.safaricom.co.ke.
	BaseURL        string `toml:"base_url"`
	ConsumerKey    string `toml:"-" secret:"consumer_key"`
	ConsumerSecret string `toml:"-" secret:"consumer_secret"`

	// ShortCode is the pay bill number, or the head office number of a till. Payments need
	// it and Passkey.
	ShortCode string `toml:"short_code"`
	Passkey   string `toml:"-" secret:"passkey"`
	// TransactionType is CustomerPayBillOnline, the default, or CustomerBuyGoodsOnline. For
	// the latter, PartyB is the till number.
	TransactionType string `toml:"transaction_type"`
	PartyB          string `toml:"party_b"`
	// AccountReference is what the customer sees as the purpose, at most 12 characters;
	// empty means the end of the payment's id.
	AccountReference string `toml:"account_reference"`
	// CallbackURL is sent if a request has no address of its own. Daraja accepts no push
	// without one, even if nothing listens there.
	CallbackURL string `toml:"callback_url"`

	// PayoutShortCode is the B2C number that payouts come from. Payouts need it and
	// Initiator.
	PayoutShortCode string `toml:"payout_short_code"`
	Initiator       string `toml:"initiator"`
	// InitiatorPassword and Certificate (PEM, Safaricom's for this environment)
	// make the security credential; SecurityCredential is one made elsewhere.
	InitiatorPassword  string `toml:"-" secret:"initiator_password"`
	Certificate        string `toml:"-" secret:"certificate"`
	SecurityCredential string `toml:"-" secret:"security_credential"`
	// Command is BusinessPayment, the default, SalaryPayment or PromotionPayment.
	Command string `toml:"command"`
	// NotFoundCodes are the result codes by which a status query says that there is no such
	// payout. Safaricom does not publish them. Without them, a payout whose answer was lost
	// is never proven absent and waits for a person. Ask Safaricom, and prove it, before
	// you fill this in: a code with another meaning would cause a second payout.
	NotFoundCodes []string `toml:"not_found_codes"`
	// FailedStates are further values of TransactionStatus, such as "Failed", which say
	// that a payout was not paid and never will be. Cancelled, Declined and Expired are
	// published and need not be listed.
	FailedStates []string `toml:"failed_states"`

	// SubmitRate and CheckRate are calls per second by all instances. Daraja limits spikes
	// but publishes no number; 0 means 20.
	SubmitRate int `toml:"submit_rate"`
	CheckRate  int `toml:"check_rate"`

	// ApprovalWindowSeconds is how long a customer has; 0 means 90, because the prompt is
	// open for 60 to 90 s. A payment keeps the window that it was created with.
	ApprovalWindowSeconds int `toml:"approval_window_seconds" json:",omitempty"`
	// PollSeconds is how often an open push is checked; 0 means 20. Payouts are checked
	// every minute: their answers come later, by callback, and only the latest few queries
	// are remembered.
	PollSeconds int `toml:"poll_seconds" json:",omitempty"`
	// SettleSeconds is how long after a payout was sent, and after the first of
	// not_found_codes, another one proves nothing; 0 means 900. If it is too short, the
	// reserve of a payout in Safaricom's queue would be released. Daraja never says that a
	// push is not found, so a push has no such time.
	SettleSeconds int `toml:"settle_seconds" json:",omitempty"`
}

// payoutWindow is the time in which a payout may be sent; no customer approves it. It
// leaves time for a second send with the longest settle time.
const payoutWindow, payoutPoll = time.Hour, time.Minute

// window is at least as long as a prompt is open.
func (c Config) window() wire.Seconds {
	return wire.Seconds{Key: "approval_window_seconds", Value: c.ApprovalWindowSeconds, Default: 90 * time.Second, Min: 60, Max: 24 * 60 * 60}
}

// poll has a lower bound because a query during the prompt is an error to Daraja and counts
// towards its spike limit.
func (c Config) poll() wire.Seconds {
	return wire.Seconds{Key: "poll_seconds", Value: c.PollSeconds, Default: 20 * time.Second, Min: 10, Max: 120}
}

// settle has a lower bound out of caution. Safaricom publishes neither how long a payout
// may wait in its queue nor how it says that there is none.
func (c Config) settle() wire.Seconds {
	return wire.Seconds{Key: "settle_seconds", Value: c.SettleSeconds, Default: 15 * time.Minute, Min: 600, Max: 1500}
}

// The limits of what a configuration may hold.
const (
	defaultRate   = 20
	maxWords      = 16 // of not_found_codes, of failed_states
	maxAccountRef = 12
	maxDesc       = 13
	maxRemarks    = 100
)

func (c *Config) hasPayments() bool { return c.ShortCode != "" || c.Passkey != "" }

func (c *Config) hasPayouts() bool {
	return c.PayoutShortCode != "" || c.Initiator != ""
}

// Validate returns every mistake in the configuration, each with its key.
func (c Config) Validate() error {
	var wrong wire.Mistakes
	say := wrong.Add
	wrong.BaseURL(c.BaseURL)
	for _, s := range []struct{ key, value string }{{"consumer_key", c.ConsumerKey}, {"consumer_secret", c.ConsumerSecret}} {
		if s.value == "" || strings.ContainsAny(s.value, " \r\n\t:") {
			say(s.key, "give it as Daraja's portal shows it, by %s_file or %s_env", s.key, s.key)
		}
	}
	if !c.hasPayments() && !c.hasPayouts() {
		say("short_code", "it is missing, and so is payout_short_code: the connection would do nothing")
	}
	if c.hasPayments() {
		c.validatePayments(say)
	}
	if c.hasPayouts() {
		c.validatePayouts(say)
	}
	wrong.Rate("submit_rate", c.SubmitRate)
	wrong.Rate("check_rate", c.CheckRate)
	wrong.Seconds(c.window(), c.poll(), c.settle())
	return wrong.Err()
}

func (c *Config) validatePayments(say func(key, format string, args ...any)) {
	if !isShortCode(c.ShortCode) {
		say("short_code", "5 to 7 digits")
	}
	if c.Passkey == "" {
		say("passkey", "it is missing; Safaricom sends it when the number goes live")
	}
	switch c.TransactionType {
	case "", payBill:
	case buyGoods:
		if c.PartyB == "" {
			say("party_b", "CustomerBuyGoodsOnline needs the till number")
		}
	default:
		say("transaction_type", "%q or %q", payBill, buyGoods)
	}
	if c.PartyB != "" && !isShortCode(c.PartyB) {
		say("party_b", "5 to 7 digits")
	}
	if c.AccountReference != "" && wire.PlainASCII(c.AccountReference, maxAccountRef) != c.AccountReference {
		say("account_reference", "at most %d letters, digits and single spaces", maxAccountRef)
	}
	if u, err := url.Parse(c.CallbackURL); c.CallbackURL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && wire.CheckBaseURL(c.CallbackURL) != nil) {
		say("callback_url", "it is not an address that begins with https://")
	}
}

func (c *Config) validatePayouts(say func(key, format string, args ...any)) {
	if !isShortCode(c.PayoutShortCode) {
		say("payout_short_code", "5 to 7 digits")
	}
	if c.Initiator == "" {
		say("initiator", "the name of the API user on M-Pesa's portal is missing")
	}
	switch c.Command {
	case "", "BusinessPayment", "SalaryPayment", "PromotionPayment":
	default:
		say("command", "BusinessPayment, SalaryPayment or PromotionPayment")
	}
	if c.SecurityCredential == "" {
		if c.InitiatorPassword == "" {
			say("initiator_password", "give it with certificate, or give security_credential")
		}
		if _, err := publicKey(c.Certificate); err != nil {
			say("certificate", "%w", err)
		}
	}
	if len(c.NotFoundCodes) > maxWords || len(c.FailedStates) > maxWords {
		say("not_found_codes, failed_states", "at most %d each", maxWords)
	}
	for _, word := range c.FailedStates {
		if s, known := payoutStates[word]; word == "" || known && s.outcome != provider.Failed {
			say("failed_states", "%q means something else", wire.Truncate(word, 20))
		}
	}
	for _, code := range c.NotFoundCodes {
		if _, failure := payoutCodes[code]; code == "" || code == "0" || failure {
			say("not_found_codes", "%q means something else", wire.Truncate(code, 20))
		}
	}
}

func isShortCode(s string) bool {
	return len(s) >= 5 && len(s) <= 7 && s[0] != '0' && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
