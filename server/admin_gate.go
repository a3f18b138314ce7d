package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"
	"strings"

	"till/internal/door"
)

// minAdminToken is the shortest token of the admin address, in bytes.
const minAdminToken = 16

// ReadAdminToken reads the bearer token of the admin address from its file.
func ReadAdminToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the token of the admin address: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minAdminToken {
		return "", fmt.Errorf("the token of the admin address in %s has fewer than %d characters; make one with: openssl rand -hex 32", file, minAdminToken)
	}
	return token, nil
}

// forOperators answers this machine, under a name of this machine, and any caller with the
// token. A page of another site can reach the address by a name of its own, and gets
// nothing. The file is read each time, so a new token needs no restart.
func (s *Server) forOperators(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !door.Local(r) && !bearerMatches(r, s.c.AdminTokenFile) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeText(w, http.StatusUnauthorized, "this is answered to this machine, under the name localhost or its address, and to a bearer of the token in --admin-token-file")
			return
		}
		h(w, r)
	}
}

// bearerMatches reports whether a request has the token of a file; no file matches none.
func bearerMatches(r *http.Request, file string) bool {
	given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found || file == "" {
		return false
	}
	token, err := ReadAdminToken(file)
	if err != nil {
		return false
	}
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
