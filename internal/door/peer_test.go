package door

import (
	"net/http"
	"net/netip"
	"testing"
)

func request(remote, host string, forwarded ...string) *http.Request {
	r := &http.Request{RemoteAddr: remote, Host: host, Header: http.Header{}}
	if len(forwarded) > 0 {
		r.Header["X-Forwarded-For"] = forwarded
	}
	return r
}

// Only what trusted proxies added is read, from the right.
func TestWhoCalls(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.1/32")}
	for _, c := range []struct {
		remote    string
		forwarded []string
		want      string
		ignored   bool
	}{
		{"203.0.113.7:1", nil, "203.0.113.7", false},
		{"203.0.113.7:1", []string{"198.51.100.1"}, "203.0.113.7", true},
		{"10.0.0.1:1", nil, "10.0.0.1", false},
		{"10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1", false},
		{"10.0.0.1:1", []string{"1.2.3.4, 198.51.100.1, 10.9.9.9"}, "198.51.100.1", false},
		{"10.0.0.1:1", []string{"1.2.3.4", "198.51.100.1"}, "198.51.100.1", false},
		{"10.0.0.1:1", []string{"198.51.100.1, nonsense"}, "10.0.0.1", false},
		{"10.0.0.1:1", []string{"nonsense, 10.2.2.2"}, "10.2.2.2", false},
		{"10.0.0.1:1", []string{""}, "10.0.0.1", false},
		{"[::ffff:127.0.0.1]:1", []string{"::ffff:198.51.100.1"}, "198.51.100.1", false},
		{"[fe80::1%eth0]:1", nil, "fe80::1", false},
		{"@", []string{"198.51.100.1"}, "invalid IP", false},
	} {
		r := request(c.remote, "", c.forwarded...)
		if got := Peer(r, trusted).String(); got != c.want {
			t.Errorf("%s, %q: %s and not %s", c.remote, c.forwarded, got, c.want)
		}
		if got := IgnoresForwarded(r, trusted); got != c.ignored {
			t.Errorf("%s, %q: ignored %t", c.remote, c.forwarded, got)
		}
	}
}

func TestWhatIsOneAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"203.0.113.7": "203.0.113.7/32", "::ffff:203.0.113.7": "203.0.113.7/32", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := Network(netip.MustParseAddr(text)).String(); got != want {
			t.Errorf("%s: %s and not %s", text, got, want)
		}
	}
	if Network(netip.Addr{}) != (netip.Prefix{}) {
		t.Error("the zero address is not the zero network")
	}
}

// A page of another site reaches this machine by its address, and never under its name.
func TestWhatIsLocal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		remote, host string
		want         bool
	}{
		{"127.0.0.1:1", "127.0.0.1:8081", true},
		{"127.0.0.1:1", "localhost:8081", true},
		{"127.0.0.1:1", "localhost", true},
		{"[::1]:1", "[::1]:8081", true},
		{"[::1]:1", "[::1]", true},
		{"[::ffff:127.0.0.1]:1", "127.9.9.9", true},
		{"127.0.0.1:1", "evil.example", false},
		{"127.0.0.1:1", "evil.example:8081", false},
		{"127.0.0.1:1", "127.0.0.1.evil.example", false},
		{"127.0.0.1:1", "localhost.evil.example", false},
		{"127.0.0.1:1", "0.0.0.0:8081", false},
		{"127.0.0.1:1", "", false},
		{"10.0.0.1:1", "127.0.0.1:8081", false},
		{"10.0.0.1:1", "localhost", false},
		{"", "localhost", false},
	} {
		if got := Local(request(c.remote, c.host)); got != c.want {
			t.Errorf("%s as %q: %t", c.remote, c.host, got)
		}
	}
}
