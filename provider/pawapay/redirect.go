package pawapay

import (
	"net/url"
	"slices"
	"strings"

	"till/provider"
	"till/provider/wire"
)

// knownHosts are the hosts that pawaPay and the providers behind it send customers to, with
// their subdomains. Its documentation names no host of an authorizationUrl; Wave's is
// pay.wave.com (docs.wave.com/checkout, wave_launch_url).
var knownHosts = []string{"wave.com", "pawapay.io"}

const maxHosts = 16

// vetted returns an answer without an address that customers must not be sent to. Our pages
// would lead people who trust them to wherever it names. Such a payment stays open without
// an address.
func (o *Operator) vetted(r provider.Result) provider.Result {
	if r.NextURL != "" && !o.mayShow(r.NextURL) {
		host := "?"
		if u, err := url.Parse(r.NextURL); err == nil {
			host = u.Hostname()
		}
		o.log.Warn("authorization address not shown", "host", provider.CleanText(wire.Truncate(host, maxText), maxText),
			"reason", "the host is none of the operator's; see authorization_hosts")
		r.NextURL = ""
	}
	return r
}

// mayShow reports whether customers may be sent to an address. A simulator shows its own.
func (o *Operator) mayShow(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !provider.IsNextURL(text) {
		return false
	}
	if u.Scheme != "https" {
		return u.Scheme+"://"+u.Host == o.base
	}
	if port := u.Port(); port != "" && port != "443" {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	return slices.ContainsFunc(slices.Concat(knownHosts, o.c.AuthorizationHosts), func(known string) bool {
		return host == known || strings.HasSuffix(host, "."+known)
	})
}

func (c Config) validateHosts(say func(key, format string, args ...any)) {
	if len(c.AuthorizationHosts) > maxHosts {
		say("authorization_hosts", "at most %d", maxHosts)
	}
	for _, h := range c.AuthorizationHosts {
		if h != strings.ToLower(h) || !strings.Contains(strings.Trim(h, "."), ".") || strings.HasPrefix(h, ".") || strings.ContainsFunc(h, func(r rune) bool {
			return r != '.' && r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
		}) {
			say("authorization_hosts", "%q is not the name of a host in lower case, as pay.example.com", wire.Truncate(h, 80))
		}
	}
}
