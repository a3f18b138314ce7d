package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"

	"till"
)

const (
	maxURL   = 2048 // bytes of an endpoint's address
	maxHost  = 253  // bytes of a host name, as DNS has it
	maxLabel = 63   // bytes between two dots of it

	// Below this, only the two ports of the web are allowed: an address must not make us
	// connect to a mail server or a secure shell.
	firstFreePort = 1024
)

// Allowed holds the private or special networks that the service's operator opens to
// webhooks. The zero value opens none.
type Allowed struct {
	networks []netip.Prefix
}

// Loopback are the networks of the machine itself, as ParseAllowed reads them.
var Loopback = []string{"127.0.0.0/8", "::1/128"}

// ParseAllowed reads networks like 10.1.0.0/16 or single addresses; one text
// may hold several, separated by commas.
func ParseAllowed(texts []string) (Allowed, error) {
	var a Allowed
	for _, list := range texts {
		for text := range strings.SplitSeq(list, ",") {
			text = strings.TrimSpace(text)
			if text == "" {
				continue
			}
			p, err := parseNetwork(text)
			if err != nil {
				return Allowed{}, err
			}
			a.networks = append(a.networks, p)
		}
	}
	return a, nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil, p.Addr().Is4In6():
		return p, fmt.Errorf("%q is not a network such as 10.1.0.0/16 or fd00:1::/64", text)
	case p != p.Masked():
		return p, fmt.Errorf("%q names an address inside a network; the network is %s", text, p.Masked())
	}
	return p, nil
}

func (a Allowed) contains(addr netip.Addr) bool {
	return slices.ContainsFunc(a.networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// loopback reports whether this machine's own addresses are allowed.
func (a Allowed) loopback() bool {
	return slices.ContainsFunc(a.networks, func(p netip.Prefix) bool { return p.Addr().IsLoopback() })
}

// specialNetworks holds the networks that are not the Internet, from IANA's registries, and
// one public address that serves a machine's own host inside Azure.
var specialNetworks = ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")))

// permits reports whether a connection to addr may be made.
func (a Allowed) permits(addr netip.Addr) bool {
	addr = addr.Unmap()
	if !a.contains(addr) {
		return specialNetworks.SafeAddr(addr) == nil
	}
	if ssrf.IPv6NAT64Prefix.Contains(addr) {
		// To allow NAT64 means the Internet behind it, not 64:ff9b::127.0.0.1.
		b := addr.As16()
		return a.permits(netip.AddrFrom4([4]byte(b[12:])))
	}
	return true
}

// CheckURL rejects an address that no endpoint of the client may have, by its text alone.
// Its errors are for clients. Sender.CheckHost checks what the name resolves to, and each
// connection is checked again.
func CheckURL(raw string, mode till.Mode, allow Allowed) error {
	u, err := parseURL(raw, allow)
	if err == nil && mode == till.Live && u.Scheme != "https" {
		return refuseURL(till.FieldURLNotAllowed, "A live client's address starts with https://.")
	}
	return err
}

func refuseURL(code till.Code, detail string) error {
	return &till.Error{Code: till.CodeValidationFailed, Fields: []till.FieldError{{Pointer: "/url", Code: code, Detail: detail}}}
}

// parseURL reads an address and applies each rule that needs neither the client nor DNS. It
// is strict because programs disagree on what unusual spellings mean, which is how such
// checks are evaded.
func parseURL(raw string, allow Allowed) (*url.URL, error) {
	switch {
	case raw == "":
		return nil, refuseURL(till.FieldRequired, "Give the address that events are posted to.")
	case len(raw) > maxURL:
		return nil, refuseURL(till.FieldTooLong, fmt.Sprintf("At most %d bytes.", maxURL))
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }):
		return nil, refuseURL(till.FieldInvalidFormat, "ASCII only, without spaces, control characters and backslashes; write a name with other letters in its xn-- form.")
	case strings.Contains(raw, "#"):
		return nil, refuseURL(till.FieldInvalidFormat, "Leave out the fragment, the part after #.")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "" || u.Scheme == "":
		return nil, refuseURL(till.FieldInvalidFormat, "An absolute address is expected, such as https://shop.example.com/webhooks.")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, refuseURL(till.FieldURLNotAllowed, "The address starts with https://.")
	case u.Hostname() == "":
		return nil, refuseURL(till.FieldInvalidFormat, "The address has no host.")
	case u.User != nil:
		return nil, refuseURL(till.FieldURLNotAllowed, "Leave out the user and password; deliveries are signed instead.")
	case !portAllowed(u):
		return nil, refuseURL(till.FieldURLNotAllowed, fmt.Sprintf("The port is 443, 80, or %d and above.", firstFreePort))
	}
	return u, checkHostText(u, allow)
}

func portAllowed(u *url.URL) bool {
	text := u.Port()
	if text == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && (n == 80 || n == 443 || n >= firstFreePort) && text[0] != '0'
}

// checkHostText rejects host names that are not of the Internet, and literal addresses of
// networks that are not.
func checkHostText(u *url.URL, allow Allowed) error {
	host := strings.ToLower(u.Hostname())
	if addr, err := netip.ParseAddr(host); err == nil {
		switch {
		case addr.Is6() != strings.HasPrefix(u.Host, "["), addr.Zone() != "":
			return refuseURL(till.FieldInvalidFormat, "The host is neither a name nor an address.")
		case !allow.permits(addr):
			return forbiddenHost()
		}
		return nil
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	case last == "":
		return refuseURL(till.FieldInvalidFormat, "Leave out the dot at the end of the host name.")
	case isNumber(last):
		return refuseURL(till.FieldInvalidFormat, "An IPv4 address is written as four decimal numbers.")
	case strings.HasPrefix(u.Host, "["), len(host) > maxHost, slices.ContainsFunc(labels, badLabel):
		return refuseURL(till.FieldInvalidFormat, "The host is neither a name nor an address.")
	case last == "localhost":
		if !allow.loopback() {
			return forbiddenHost()
		}
	case isInternalName(labels) && len(allow.networks) == 0:
		// Where a network is allowed, such names are normal there. The addresses they
		// resolve to decide.
		return refuseURL(till.FieldURLNotAllowed, "The host name is one of a private network.")
	}
	return nil
}

func forbiddenHost() error {
	return refuseURL(till.FieldURLNotAllowed, "The host is in a private or special network, to which nothing is sent.")
}

// isNumber reports whether a label makes parsers read the whole name as an
// IPv4 address: decimal, octal or hexadecimal.
func isNumber(label string) bool {
	if strings.Trim(label, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(label, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

func badLabel(label string) bool {
	return label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' ||
		strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != ""
}

// internalZones are the last labels of names that are never public.
var internalZones = []string{"local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "arpa"}

func isInternalName(labels []string) bool {
	return len(labels) == 1 || slices.Contains(internalZones, labels[len(labels)-1])
}

// ParseProxy reads the address of the proxy for all webhooks; "" means none.
func ParseProxy(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("a proxy looks like http://proxy.example.com:3128") // the text may hold a password
	}
	return u, nil
}

// errAddressRefused says that the guard refused a connection.
var errAddressRefused = errors.New("the address is in a private or special network")

// guard decides about addresses, for a Sender.
type guard struct {
	allow Allowed
	own   map[netip.Addr]bool // this machine's addresses: services there may trust local connections
}

func newGuard(allow Allowed) guard {
	g := guard{allow, map[netip.Addr]bool{}}
	addrs, _ := net.InterfaceAddrs() // without the list, specialNetworks still applies
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			g.own[p.Addr().Unmap()] = true
		}
	}
	return g
}

func (g *guard) permits(addr netip.Addr) bool {
	addr = addr.Unmap()
	return g.allow.permits(addr) && (!g.own[addr] || g.allow.contains(addr))
}

// control is the last check, as net.Dialer.ControlContext. It sees the address that is
// about to be connected to, after all names are resolved.
func (g *guard) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" || !g.permits(a.Addr()) {
		return errAddressRefused
	}
	return nil
}
