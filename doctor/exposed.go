package doctor

import (
	"net/netip"
	"strings"

	"till/internal/system"
	"till/operators"
	"till/server"
	"till/store"
)

// examineExposure reports what others can read, as a start of the server does.
func (d *doctor) examineExposure(s *Setup) {
	c := server.Config{
		Database: s.Database, SandboxPath: operators.SandboxPath(s.Database), SecretFile: s.SecretPath(), Listen: s.Listen, BaseURL: s.BaseURL,
		AdminListen: s.AdminListen, AdminTokenFile: s.AdminTokenFile,
	}
	found := map[string]string{}
	for _, e := range server.Exposed(c) {
		found[e.Name] = e.Detail
	}
	judge := func(asked bool, name, fine string) {
		if asked {
			d.addIf(name, found[name] != "", Risky, fine, found[name])
		}
	}
	judge(system.CanCheckReaders && c.SecretFile != "", server.ExposedFiles, "no other user of this machine can read them")
	judge(store.IsPostgres(s.Database), server.ExposedDatabase, "it is encrypted, or does not leave this machine")
	judge(s.Listen != "" || s.BaseURL != "", server.ExposedAPI, "it is encrypted, or does not leave this machine")
	judge(s.AdminListen != "", server.ExposedAdmin, "other machines do not reach it, or need its token")
	if s.Config == "" {
		d.examineProxies(s, nil)
	}
}

// examineProxies warns if a proxy with TLS may be in front that is not named.
func (d *doctor) examineProxies(s *Setup, trusted []netip.Prefix) {
	if !strings.HasPrefix(s.BaseURL, "https://") || len(s.Served) > 0 { // which the server itself shows
		return
	}
	d.addIf(server.ExposedProxy, len(trusted) == 0, Risky, "trusted_proxies names it",
		"the base URL is https, and trusted_proxies names no proxy: if one is in front, everybody counts as one address, and who tries out passwords keeps all others waiting")
}
