package mpesa

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"till/provider/wire"
)

// fetchToken fetches a new token, which ends the one before. provider.Tokens lets one
// instance do it for all.
func (o *Operator) fetchToken(ctx context.Context) (string, time.Duration, error) {
	h := http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(o.c.ConsumerKey+":"+o.c.ConsumerSecret))}}
	reply, err := o.client.Do(ctx, http.MethodGet, o.base+"/oauth/v1/generate?grant_type=client_credentials", h, nil)
	if err != nil {
		return "", 0, err
	}
	return o.answerLog.ReadToken("token", reply, readToken)
}

// tokenErrors are the errors by which Daraja refuses a token, with the HTTP status of each:
// on the push and its query, on the transaction status, and as integrators report it
// [unverified].
var tokenErrors = map[string]int{
	"404.001.03": http.StatusNotFound,
	"400.003.01": http.StatusBadRequest,
	"401.002.01": http.StatusUnauthorized,
}

// tokenRefused reports whether Daraja refused the token. Any other 401 has another reason:
// a new token would not help, and would end the one that other instances use.
func tokenRefused(r *wire.Reply) bool {
	var f errorBody
	if wire.Decode(r.Body, &f) != nil {
		return false
	}
	status, known := tokenErrors[string(f.Code)]
	return known && (r.Status == status || r.Status == http.StatusUnauthorized)
}

// readToken reads the answer to a token call.
func readToken(r *wire.Reply) (string, time.Duration, error) {
	return wire.ParseToken(r, r.Status == http.StatusBadRequest || r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden)
}
