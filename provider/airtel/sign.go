package airtel

import (
	"bytes"
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
	"strings"
)

// publicKey reads a public key as Airtel's portal and its key call give it:
// base64 of the DER form, or PEM.
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

// paddings are the ways in which Airtel's countries want something encrypted.
//
// PKCS #1 v1.5 is old, and deprecated where the other side can be probed with
// forgeries; nobody but Airtel can tell us otherwise.
var paddings = map[string]func(k *rsa.PublicKey, text []byte) ([]byte, error){
	"":         pkcs1v15,
	"pkcs1v15": pkcs1v15,
	"oaep-sha1": func(k *rsa.PublicKey, text []byte) ([]byte, error) {
		return rsa.EncryptOAEP(sha1.New(), rand.Reader, k, text, nil)
	},
	"oaep-sha256": func(k *rsa.PublicKey, text []byte) ([]byte, error) {
		return rsa.EncryptOAEP(sha256.New(), rand.Reader, k, text, nil)
	},
	// What Java means by OAEPWithSHA-256AndMGF1Padding unless told otherwise.
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

// signature returns the headers x-signature and x-key of a body: the body
// under AES-256-CBC with a key of its own, and that key with its IV under
// Airtel's RSA key, which is of 1024 bits and padded by PKCS #1 v1.5.
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
