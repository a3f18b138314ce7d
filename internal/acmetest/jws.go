package acmetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
)

// maxBody is the longest request in bytes.
const maxBody = 64 << 10

// request is a request whose signature was verified.
type request struct {
	*http.Request
	key     *ecdsa.PublicKey // of the account
	payload []byte
}

// jwk is a public key of the curve P-256.
type jwk struct{ Kty, Crv, X, Y string }

func (j jwk) key() (*ecdsa.PublicKey, error) {
	x, errX := base64.RawURLEncoding.DecodeString(j.X)
	y, errY := base64.RawURLEncoding.DecodeString(j.Y)
	if j.Kty != "EC" || j.Crv != "P-256" || errX != nil || errY != nil || len(x) != 32 || len(y) != 32 {
		return nil, errors.New("the key is not one of P-256")
	}
	return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
}

// thumbprint returns the digest of a key (RFC 7638).
func thumbprint(k *ecdsa.PublicKey) string {
	point, err := k.Bytes()
	if err != nil {
		return ""
	}
	encode := base64.RawURLEncoding.EncodeToString
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":%q,"y":%q}`, encode(point[1:33]), encode(point[33:])))
	return encode(sum[:])
}

// signed verifies a request: its nonce, its address and its signature by an account. Only
// a request for an account brings its key along.
func (s *Server) signed(h func(http.ResponseWriter, *request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.nonce(w)
		verified, err := s.verify(r)
		if errors.Is(err, errNonce) {
			problem(w, http.StatusBadRequest, "badNonce", err.Error())
			return
		}
		if err != nil {
			problem(w, http.StatusUnauthorized, "unauthorized", err.Error())
			return
		}
		h(w, verified)
	}
}

var errNonce = errors.New("the nonce is not one of ours, or was used before")

func (s *Server) verify(r *http.Request) (*request, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	var in struct{ Protected, Payload, Signature string }
	if err := json.Unmarshal(body, &in); err != nil || r.Header.Get("Content-Type") != "application/jose+json" {
		return nil, errors.New("the body is not a signed one")
	}
	header, errHeader := base64.RawURLEncoding.DecodeString(in.Protected)
	payload, errPayload := base64.RawURLEncoding.DecodeString(in.Payload)
	signature, errSignature := base64.RawURLEncoding.DecodeString(in.Signature)
	var protected struct {
		Alg, Nonce, URL, Kid string
		JWK                  *jwk
	}
	if err := errors.Join(errHeader, errPayload, errSignature, json.Unmarshal(header, &protected)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	fresh, key := s.nonces[protected.Nonce], s.accounts[protected.Kid]
	delete(s.nonces, protected.Nonce)
	s.mu.Unlock()
	switch {
	case !fresh:
		return nil, errNonce
	case protected.URL != s.url+r.URL.Path:
		return nil, errors.New("it was signed for another address")
	case protected.Alg != "ES256" || len(signature) != 64:
		return nil, errors.New("the signature is not ES256")
	case protected.JWK != nil && r.URL.Path == "/account":
		if key, err = protected.JWK.key(); err != nil {
			return nil, err
		}
	}
	if key == nil {
		return nil, errors.New("there is no such account")
	}
	sum := sha256.Sum256(bytes.Join([][]byte{[]byte(in.Protected), []byte(in.Payload)}, []byte(".")))
	if !ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return nil, errors.New("the signature is wrong")
	}
	return &request{r, key, payload}, nil
}
