package mtnmomo

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"till/provider"
	"till/provider/wire"
)

// fetchToken fetches a token. The call has no body: MTN lists one as a cause of 400.
// The target environment is optional on the old platform and must be there on
// the new.
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
	token, life, err := readToken(reply)
	if err != nil && !errors.Is(err, provider.ErrCredentials) {
		p.answerLog.Unreadable(p.name+" token", reply, err)
	}
	return token, life, err
}

// tokenRefused says that MTN did not take the token, or the subscription key: it
// answers 401 to both.
func tokenRefused(r *wire.Reply) bool { return r.Status == http.StatusUnauthorized }

// readToken reads the answer to a token call.
func readToken(r *wire.Reply) (string, time.Duration, error) {
	if r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden {
		return "", 0, fmt.Errorf("%w: the token call was answered %d", provider.ErrCredentials, r.Status)
	}
	if r.Status != http.StatusOK {
		// The old platform says 500 to a wrong key.
		if f, err := readError(r.Body); err == nil && (f.Error == "login_failed" || f.Error == "invalid_client") {
			return "", 0, fmt.Errorf("%w: %s", provider.ErrCredentials, f.Error)
		}
		return "", 0, fmt.Errorf("the token call was answered %d", r.Status)
	}
	var t struct {
		Token wire.Text `json:"access_token"`
		Life  wire.Text `json:"expires_in"`
	}
	if err := wire.Decode(r.Body, &t); err != nil {
		return "", 0, err
	}
	life, ok := wire.TokenLifetime(string(t.Life))
	if t.Token == "" || strings.ContainsAny(string(t.Token), "\r\n\x00") || !ok {
		return "", 0, errors.New("the token call was answered without a token")
	}
	return string(t.Token), life, nil
}
