package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"till"
	"till/console"
	"till/console/shell"
	"till/pay"
	"till/people"
	"till/reference"
	"till/sdk"
)

// buildConsole makes the pages of the console, unless they are off or this
// instance serves nothing.
func (s *Server) buildConsole() (err error) {
	if s.c.NoConsole || !s.c.Role.serves() {
		return nil
	}
	origin, err := consoleOrigin(s.consoleBase())
	if err != nil {
		return err
	}
	if s.consoleListener != nil && s.c.BaseURL != "" && s.c.ConsoleURL == "" {
		s.log.Warn("console's own address not told", "links", origin, "hint", "links and passkeys name the API's address, where no console is: say --console-url")
	}
	if s.people, err = people.New(people.Config{Store: s.store, Secret: s.secret, Ring: s.ring, Origin: origin, HouseNetworks: s.operators.File.HouseNetworks, Log: s.log}); err != nil {
		return err
	}
	s.console, err = console.New(shell.Config{
		Store: s.store, People: s.people, Accounts: s.accounts, Endpoints: s.endpoints, Secret: s.secret, Ring: s.ring, BaseURL: s.baseURL, Origin: s.consoleBase(),
		Collector: s.collector, Payouts: s.payouts, Checkouts: s.checkouts, Sandbox: s.sandbox, TestQuota: s.c.TestQuota,
		PhoneOrigin:    s.phoneOrigin(),
		TrustedProxies: s.operators.File.TrustedProxies, SubmitRate: s.submitRate, Log: s.log,
	})
	return err
}

// submitRate returns how many sends a second a connection takes.
func (s *Server) submitRate(connection string, kind till.SubjectKind) int {
	if kind == till.SubjectPayout {
		return s.payouts.SubmitRate(connection)
	}
	return s.collector.SubmitRate(connection)
}

// consoleBase returns the address at which browsers open the console.
func (s *Server) consoleBase() string {
	switch {
	case s.c.ConsoleURL != "":
		return s.c.ConsoleURL
	case s.consoleListener != nil && s.c.BaseURL == "":
		return "http://" + s.consoleListener.Addr().String()
	}
	return s.baseURL
}

// consoleOrigin returns where browsers see the console. An address of this
// machine is called localhost: passkeys are not bound to addresses.
func consoleOrigin(baseURL string) (string, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return "", err
	}
	host := u.Host
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.IsLoopback() {
		host = "localhost"
		if port := u.Port(); port != "" {
			host = net.JoinHostPort(host, port)
		}
	}
	return u.Scheme + "://" + host, nil
}

// phoneOrigin returns where a phone in the same network reaches this machine, ""
// if that is where everybody does. A server that listens on all addresses calls
// itself 127.0.0.1, which no phone finds it by.
func (s *Server) phoneOrigin() string {
	listener := s.listener
	if s.consoleListener != nil {
		listener = s.consoleListener
	}
	if s.c.BaseURL != "" || s.c.ConsoleURL != "" || listener == nil {
		return ""
	}
	bound, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !bound.IP.IsUnspecified() {
		return ""
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsPrivate() {
			return "http://" + net.JoinHostPort(n.IP.String(), strconv.Itoa(bound.Port))
		}
	}
	return ""
}

// ConsoleURL returns where people open the console, "" if it is not served.
func (s *Server) ConsoleURL() string {
	if s.console == nil {
		return ""
	}
	origin, err := consoleOrigin(s.consoleBase())
	if err != nil {
		return ""
	}
	return origin + shell.Prefix + "/"
}

// ConsoleOrigin returns the origin of links and passkeys, "" if the console is not
// served.
func (s *Server) ConsoleOrigin() string {
	if s.people == nil {
		return ""
	}
	return s.people.Origin()
}

// beside returns who answers a request that is not the API's, nil if it is.
func (s *Server) beside(r *http.Request) http.Handler {
	if s.console != nil && s.consoleListener == nil && shell.Handles(r.URL.Path) {
		return s.console
	}
	if s.pay != nil && s.payListener == nil && pay.Handles(r.URL.Path) {
		return s.pay
	}
	if s.pages != nil && reference.Handles(r.URL.Path) {
		return s.pages
	}
	if s.pages != nil && r.URL.Path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html") {
		return http.RedirectHandler(reference.Prefix+"/", http.StatusFound) // somebody typed the address
	}
	if s.packages != nil && sdk.Handles(r.URL.Path) {
		return s.packages
	}
	return nil
}

// errorPages returns what the addresses of pages about errors begin with, "" if
// they are not served.
func (s *Server) errorPages() string {
	if s.pages == nil {
		return ""
	}
	return strings.TrimSuffix(s.baseURL, "/v1") + reference.Prefix + "/errors/"
}
