package server

import (
	"net/http"
	"strings"
	"sync"

	"till/internal/door"
)

// ExposedProxy is a proxy in front that is not named: everybody behind it counts as one
// address.
const ExposedProxy = "proxy"

const unnamedProxy = "a proxy is in front and trusted_proxies does not name it, so everybody counts as one address: who tries out keys or passwords there keeps all others waiting"

// watchForwarded warns once if requests come with X-Forwarded-For although no proxy is
// named and the base URL says that one may be there.
func (s *Server) watchForwarded(h http.Handler) http.Handler {
	if len(s.operators.File.TrustedProxies) > 0 || s.c.usesTLS() || !strings.HasPrefix(s.baseURL, "https://") {
		return h
	}
	warn := sync.OnceFunc(func() {
		s.log.Warn("setup exposed", "what", ExposedProxy, "detail", unnamedProxy, "hint", door.ProxyHint)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["X-Forwarded-For"]) > 0 {
			warn()
		}
		h.ServeHTTP(w, r)
	})
}
