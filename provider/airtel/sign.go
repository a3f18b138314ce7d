package airtel

import (
	"bytes"
	"context"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"till/provider/wire"
)

// publicKey parses a public key as Airtel's portal and its key call return it: base64 of
// the DER form, or PEM.
func publicKey(text string) (*rsa.PublicKey, error) {
	der := []byte(nil)
	if block, _ := pem.Decode([]byte(text)); block != nil {
		der = block.Bytes
	} else {
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil || len(b) == 0 {
			return nil, errors.New("it is neither base64 nor PEM of a public key")
		}
		der = b
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("it is not a public key")
	}
	if k, ok := key.(*rsa.PublicKey); ok {
		return k, nil
	}
	return nil, errors.New("it is not an RSA key")
}

// paddings are the encryptions that Airtel uses in different countries.
//
// PKCS #1 v1.5 is old and deprecated, because an attacker can probe a receiver that
// decrypts. Here Airtel is the receiver and decides.
var paddings = map[string]func(k *rsa.PublicKey, text []byte) ([]byte, error){
	"":         pkcs1v15,
	"pkcs1v15": pkcs1v15,
	"oaep-sha1": func(k *rsa.PublicKey, text []byte) ([]byte, error) {
		return rsa.EncryptOAEP(sha1.New(), rand.Reader, k, text, nil)
	},
	"oaep-sha256": func(k *rsa.PublicKey, text []byte) ([]byte, error) {
		return rsa.EncryptOAEP(sha256.New(), rand.Reader, k, text, nil)
	},
	// This is Java's default for OAEPWithSHA-256AndMGF1Padding.
	"oaep-sha256-mgf1-sha1": func(k *rsa.PublicKey, text []byte) ([]byte, error) {
		return rsa.EncryptOAEPWithOptions(rand.Reader, k, text, &rsa.OAEPOptions{Hash: crypto.SHA256, MGFHash: crypto.SHA1})
	},
}

func pkcs1v15(k *rsa.PublicKey, text []byte) ([]byte, error) {
	//lint:ignore SA1019 Airtel takes nothing else
	return rsa.EncryptPKCS1v15(rand.Reader, k, text)
}

// encryptPIN encrypts the PIN for one request.
func encryptPIN(k *rsa.PublicKey, padding, pin string) (string, error) {
	b, err := paddings[padding](k, []byte(pin))
	if err != nil {
		return "", errors.New("the PIN cannot be encrypted")
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

// signature returns the headers x-signature and x-key of a body. The first is the body
// under AES-256-CBC with a new key. The second is that key with its IV under Airtel's RSA
// key of 1024 bits, padded by PKCS #1 v1.5.
func signature(k *rsa.PublicKey, body []byte) (sign, key string, err error) {
	var secret [32]byte
	var iv [aes.BlockSize]byte
	rand.Read(secret[:])
	rand.Read(iv[:])
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		return "", "", err
	}
	pad := aes.BlockSize - len(body)%aes.BlockSize
	text := append(bytes.Clone(body), bytes.Repeat([]byte{byte(pad)}, pad)...)
	cipher.NewCBCEncrypter(block, iv[:]).CryptBlocks(text, text)
	sealed, err := pkcs1v15(k, []byte(base64.StdEncoding.EncodeToString(secret[:])+":"+base64.StdEncoding.EncodeToString(iv[:])))
	if err != nil {
		return "", "", errors.New("Airtel's key cannot encrypt")
	}
	return base64.StdEncoding.EncodeToString(text), base64.StdEncoding.EncodeToString(sealed), nil
}

// keyLife is how long Airtel's key is cached. It is valid for months, but Airtel gives its
// end without a time zone.
const keyLife = 10 * time.Minute

// addSignature adds the two headers of a signed message. It returns a reply if Airtel
// refuses the token in the call for its key.
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
		return nil, nil, fmt.Errorf("fetch Airtel's signing key: %w", err)
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

// readKey reads the answer to the call for the key.
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
