package airtel

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"till/provider"
	"till/provider/wire"
)

// session is what both products of an application share: one token serves all
// of them.
type application struct {
	base                          string
	id, secret                    string
	client                        *wire.Client
	answerLog                     *wire.AnswerLog
	access                        wire.Access
	countryHeader, currencyHeader []string // header values that never change
	signMessages                  bool
	now                           func() time.Time

	keyLock         chan struct{}  // holds one place; a wait for it ends with its caller's time
	signingKeyValue *rsa.PublicKey // with which messages are signed
	keyUntil        time.Time
}

func newApplication(c Config, d provider.Deps) *application {
	s := &application{base: strings.TrimRight(c.BaseURL, "/"), id: c.ClientID, secret: c.ClientSecret,
		client: wire.NewClient(d.Conns), answerLog: wire.NewAnswerLog(d),
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
	token, life, err := readToken(reply)
	if err != nil && !errors.Is(err, provider.ErrCredentials) {
		s.answerLog.Unreadable("token", reply, err)
	}
	return token, life, err
}

// call makes one call with the token, signed if it asks for money and that is
// configured.
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

// keyLife is for how long Airtel's key is used. It is valid for months; Airtel
// tells until when in a form without a zone.
const keyLife = 10 * time.Minute

// addSignature adds the two headers of a signed message. It returns a reply if
// Airtel refuses the token already when it is asked for its key.
func (s *application) addSignature(ctx context.Context, h http.Header, token string, body []byte) (*wire.Reply, error) {
	key, reply, err := s.signingKey(ctx, token)
	if key == nil {
		return reply, err
	}
	sign, sealed, err := signature(key, body)
	if err != nil {
		return nil, err
	}
	h["X-Signature"], h["X-Key"] = []string{sign}, []string{sealed}
	return nil, nil
}

func (s *application) signingKey(ctx context.Context, token string) (*rsa.PublicKey, *wire.Reply, error) {
	select {
	case s.keyLock <- struct{}{}:
		defer func() { <-s.keyLock }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if s.signingKeyValue != nil && s.now().Before(s.keyUntil) {
		return s.signingKeyValue, nil, nil
	}
	reply, err := s.client.Do(ctx, http.MethodGet, s.base+"/v1/rsa/encryption-keys",
		http.Header{"Authorization": {"Bearer " + token}, "X-Country": s.countryHeader, "X-Currency": s.currencyHeader, "Accept": anyType}, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("Airtel's key for signing cannot be had: %w", err)
	}
	if tokenRefused(reply) {
		return nil, reply, nil
	}
	key, err := readKey(reply)
	if err != nil {
		s.answerLog.Unreadable("encryption keys", reply, err)
		return nil, nil, err
	}
	s.signingKeyValue, s.keyUntil = key, s.now().Add(keyLife)
	return key, nil, nil
}

// readKey reads the answer to a call for the key.
func readKey(r *wire.Reply) (*rsa.PublicKey, error) {
	var a struct {
		Data struct {
			Key wire.Text `json:"key"`
		} `json:"data"`
	}
	if r.Status != http.StatusOK {
		return nil, fmt.Errorf("the call for Airtel's key was answered %d", r.Status)
	}
	if err := wire.Decode(r.Body, &a); err != nil {
		return nil, err
	}
	key, err := publicKey(string(a.Data.Key))
	if err != nil {
		return nil, fmt.Errorf("Airtel's key for signing: %w", err)
	}
	return key, nil
}
