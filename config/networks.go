package config

import "net/netip"

// trustedProxies reads the networks whose X-Forwarded-For is trusted, from either of two
// places.
func (r *reader) trustedProxies(top, callbacks []string) {
	r.file.TrustedProxies = r.networks("trusted_proxies", top)
	if callbacks == nil {
		return
	}
	if top != nil {
		r.problem(r.lines.line("callbacks.trusted_proxies"), "trusted_proxies stands at the top already; take it out of [callbacks]")
		return
	}
	r.file.TrustedProxies = r.networks("callbacks.trusted_proxies", callbacks)
}

func (r *reader) networks(path string, texts []string) []netip.Prefix {
	if len(texts) > maxNetworks {
		r.problem(r.lines.line(path), "there are more than %d networks", maxNetworks)
		return nil
	}
	var out []netip.Prefix
	for _, t := range texts {
		p, err := netip.ParsePrefix(t)
		if a, e := netip.ParseAddr(t); e == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		switch {
		case err != nil:
			r.problem(r.lines.line(path), "%q is not a network; it looks like 212.88.125.100/32", t)
		case p != p.Masked():
			r.problem(r.lines.line(path), "%q names an address inside; the network is %s", t, p.Masked())
		default:
			out = append(out, p)
		}
	}
	return out
}
