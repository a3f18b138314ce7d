package wire

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// CheckBaseURL says what is wrong with an operator's base URL, nil if nothing. Money and
// secrets go over it, so without TLS only a simulator on this machine is allowed.
func CheckBaseURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return errors.New("it is missing")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it is not an address that begins with https://")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(s, " \t\r\n"):
		return errors.New("it may have a host and a path, nothing else")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return errors.New("it must begin with https://; http:// is for a simulator on this machine")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
