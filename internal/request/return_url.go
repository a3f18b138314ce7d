package request

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"till"
)

// maxReturnURL is how long a way back may be, in bytes.
const maxReturnURL = 512

// CheckReturnURL refuses a way back that a page must not offer: it would lead people who trust
// the page to somewhere else. own are the hosts of this service.
func CheckReturnURL(v *Validator, text *string, live bool, own []string) {
	if text == nil {
		return
	}
	wrong := func(detail string) { v.Add("/return_url", till.FieldURLNotAllowed, detail) }
	u, err := url.Parse(*text)
	if len(*text) > maxReturnURL {
		v.Add("/return_url", till.FieldTooLong, "must have at most "+strconv.Itoa(maxReturnURL)+" bytes")
		return
	}
	if err != nil || u.Host == "" || u.Opaque != "" || strings.ContainsFunc(*text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		wrong("must be an absolute https address")
		return
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	ip, notIP := netip.ParseAddr(host)
	loopback := host == "localhost" || notIP == nil && ip.IsLoopback()
	switch {
	case u.Scheme != "https" && (live || u.Scheme != "http" || !loopback):
		wrong("must begin with https://; http is for test clients, to localhost")
	case u.User != nil || u.Fragment != "" || strings.Contains(*text, "#"):
		wrong("must have no user and no fragment")
	case live && (notIP == nil || loopback || !strings.Contains(host, ".") || numeric(host)):
		wrong("must have the name of a host, not an address")
	case slices.Contains(own, host):
		wrong("must not be an address of this service")
	}
}

// numeric reports whether a host's last part is a number, which browsers read as an address.
func numeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last == "" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
}
