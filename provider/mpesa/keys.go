package mpesa

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
)

// publicKey parses Safaricom's certificate, or a public key.
func publicKey(text string) (*rsa.PublicKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("it is not a certificate in PEM")
	}
	var key any
	if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
		key = cert.PublicKey
	} else if key, err = x509.ParsePKIXPublicKey(block.Bytes); err != nil {
		return nil, errors.New("it cannot be read")
	}
	if k, ok := key.(*rsa.PublicKey); ok && k.Size() >= 256 {
		return k, nil
	}
	return nil, errors.New("it must hold an RSA key of at least 2048 bits")
}

// credential returns the initiator's password as Daraja requires it: encrypted for
// Safaricom with PKCS #1 v1.5, in base64.
func (c *Config) credential() (string, error) {
	if c.SecurityCredential != "" {
		return c.SecurityCredential, nil
	}
	key, err := publicKey(c.Certificate)
	if err != nil {
		return "", err
	}
	//lint:ignore SA1019 Daraja takes nothing else
	sealed, err := rsa.EncryptPKCS1v15(rand.Reader, key, []byte(c.InitiatorPassword))
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(sealed), nil
}
