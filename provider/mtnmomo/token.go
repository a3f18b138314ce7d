package mtnmomo

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"till/provider/wire"
)

// fetchToken fetches a token. The call has no body, because MTN lists a body as a cause of
// 400. The target environment is optional on the old platform and required on the new one.
func (p *service) fetchToken(ctx context.Context) (string, time.Duration, error) {
	basic := base64.StdEncoding.EncodeToString([]byte(p.user + ":" + p.secret))
	reply, err := p.client.Do(ctx, http.MethodPost, p.base+"/"+p.name+"/token/", http.Header{
		"Authorization":             {"Basic " + basic},
		"Ocp-Apim-Subscription-Key": p.keyHeader,
		"X-Target-Environment":      p.environmentHeader,
	}, nil)
	if err != nil {
		return "", 0, err
	}
	return p.answerLog.ReadToken(p.name+" token", reply, readToken)
}

// tokenRefused reports whether MTN refused the token or the subscription key: it answers
// 401 to both.
func tokenRefused(r *wire.Reply) bool { return r.Status == http.StatusUnauthorized }

// readToken reads the answer to a token call. The old platform answers 500 to a
// wrong key.
func readToken(r *wire.Reply) (string, time.Duration, error) {
	f, err := readError(r.Body)
	wrongKey := r.Status != http.StatusOK && err == nil && (f.Error == "login_failed" || f.Error == "invalid_client")
	return wire.ParseToken(r, wrongKey || r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden)
}
