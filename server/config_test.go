package server

import (
	"strings"
	"testing"
)

// What decides where webhooks may go is refused at the start, not at the first
// delivery, and a password in it is not repeated.
func TestWebhookSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		config     Config
	}{
		{"networks", "", Config{WebhookAllow: []string{"10.1.0.0/16", "fd00::/8,192.168.1.7"}}},
		{"a proxy", "", Config{WebhookProxy: "http://till:pass@proxy.internal:3128"}},
		{"no network", `"10.1.0.0/99" is not a network`, Config{WebhookAllow: []string{"10.1.0.0/99"}}},
		{"an address inside", "the network is 10.1.0.0/16", Config{WebhookAllow: []string{"10.1.2.3/16"}}},
		{"no proxy", "a proxy looks like", Config{WebhookProxy: "socks5://till:pass@proxy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.config.Database = "till.db"
			err := c.config.setDefaults()
			if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "pass@")) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
