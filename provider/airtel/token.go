package airtel

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"till/provider"
	"till/provider/wire"
)

// application is what both services of an application share: one token is valid for both.
type application struct {
	base                          string
	id, secret                    string
	client                        *wire.Client
	answerLog                     *wire.AnswerLog
	access                        wire.Access
	countryHeader, currencyHeader []string // header values that never change
	signMessages                  bool
	now                           func() time.Time

	keyLock         chan struct{}  // a lock of one place, so that waiting ends with the caller's context
	signingKeyValue *rsa.PublicKey // signs messages
	keyUntil        time.Time
}

func newApplication(c Config, d provider.Deps) *application {
	s := &application{base: strings.TrimRight(c.BaseURL, "/"), id: c.ClientID, secret: c.ClientSecret,
		client: wire.ClientOf(d), answerLog: wire.NewAnswerLog(d),
		countryHeader: []string{c.Country}, currencyHeader: []string{c.Currency}, signMessages: c.SignMessages, now: d.Now, keyLock: make(chan struct{}, 1)}
	s.access = wire.Access{Tokens: d.Tokens, Name: "token", Fetch: s.fetchToken}
	return s
}

var (
	jsonType = []string{"application/json"}
	anyType  = []string{"*/*"}
)

// fetchToken fetches a token.
func (s *application) fetchToken(ctx context.Context) (string, time.Duration, error) {
	body, err := json.Marshal(struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Grant  string `json:"grant_type"`
	}{s.id, s.secret, "client_credentials"})
	if err != nil {
		return "", 0, err
	}
	reply, err := s.client.Do(ctx, http.MethodPost, s.base+"/auth/oauth2/token", http.Header{"Content-Type": jsonType, "Accept": anyType}, body)
	if err != nil {
		return "", 0, err
	}
	return s.answerLog.ReadToken("token", reply, readToken)
}

// call makes one call with the token. It signs a request for money if that is configured.
func (s *application) call(ctx context.Context, method, path string, body []byte) (*wire.Reply, error) {
	return s.access.Call(ctx, tokenRefused, func(token string) (*wire.Reply, error) {
		h := http.Header{"Authorization": {"Bearer " + token}, "X-Country": s.countryHeader, "X-Currency": s.currencyHeader, "Accept": anyType}
		if body != nil {
			h["Content-Type"] = jsonType
			if s.signMessages {
				if reply, err := s.addSignature(ctx, h, token, body); err != nil {
					return nil, fmt.Errorf("%w: %w", provider.ErrNotSent, err)
				} else if reply != nil {
					return reply, nil
				}
			}
		}
		return s.client.Do(ctx, method, s.base+path, h, body)
	})
}

// readToken reads the answer to a token call. Airtel refuses credentials with 401
// or 403, or with the error "invalid_client" under any status.
func readToken(r *wire.Reply) (string, time.Duration, error) {
	var a struct {
		Error wire.Text `json:"error"`
	}
	refused := wire.Decode(r.Body, &a) == nil && a.Error == "invalid_client"
	return wire.ParseToken(r, refused || r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden)
}

// tokenRefused reports whether Airtel refused the token: 401, or 403 without a code of
// Airtel's.
func tokenRefused(r *wire.Reply) bool {
	if r.Status != http.StatusUnauthorized && r.Status != http.StatusForbidden {
		return false
	}
	var a answer
	return wire.Decode(r.Body, &a) != nil || a.code() == ""
}
