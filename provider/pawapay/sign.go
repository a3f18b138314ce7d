package pawapay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// sigLabel is pawaPay's label for its signatures and for ours.
const sigLabel = "sig-pp"

// sigLife is how long our signature is valid.
const sigLife = time.Minute

// signedComponents is what we sign, in the order of pawaPay's own examples.
const signedComponents = `("@method" "@authority" "@path" "signature-date" "content-digest" "content-type")`

// signingKey parses a private key in PEM: PKCS #8 or SEC 1, on P-256.
func signingKey(text string) (*ecdsa.PrivateKey, error) {
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("it is not a private key in PEM")
		}
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		default: // such as EC PARAMETERS, which openssl writes first
			continue
		}
		if err != nil {
			return nil, errors.New("it cannot be read")
		}
		ec, ok := key.(*ecdsa.PrivateKey)
		if !ok || ec.Curve != elliptic.P256() {
			return nil, errors.New("it must be an EC key on P-256: openssl ecparam -name prime256v1 -genkey -noout")
		}
		return ec, nil
	}
}

// sign adds the headers of RFC 9421 to a request with a body.
func (o *Operator) sign(h http.Header, method, path string, body []byte) error {
	now := o.now().UTC()
	sum := sha512.Sum512(body)
	digest := "sha-512=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	date := now.Format("2006-01-02T15:04:05.000000Z")
	params := fmt.Sprintf(`%s;alg="ecdsa-p256-sha256";keyid="%s";created=%d;expires=%d`,
		signedComponents, o.c.SigningKeyID, now.Unix(), now.Add(sigLife).Unix())
	var base strings.Builder
	base.Grow(512)
	for _, line := range [][2]string{
		{"@method", method}, {"@authority", o.host}, {"@path", o.pathPrefix() + path}, {"signature-date", date},
		{"content-digest", digest}, {"content-type", h.Get("Content-Type")},
	} {
		base.WriteString(`"` + line[0] + `": ` + line[1] + "\n")
	}
	base.WriteString(`"@signature-params": ` + params)
	hash := sha256.Sum256([]byte(base.String()))
	sig, err := o.signature(hash[:])
	if err != nil {
		return err
	}
	h["Content-Digest"] = []string{digest}
	h["Signature-Date"] = []string{date}
	h["Signature-Input"] = []string{sigLabel + "=" + params}
	h["Signature"] = []string{sigLabel + "=:" + base64.StdEncoding.EncodeToString(sig) + ":"}
	h["Accept-Signature"] = []string{"rsa-pss-sha512,ecdsa-p256-sha256,rsa-v1_5-sha256,ecdsa-p384-sha384"}
	h["Accept-Digest"] = []string{"sha-256,sha-512"}
	return nil
}

// signature signs a hash in the encoding of the configuration.
func (o *Operator) signature(hash []byte) ([]byte, error) {
	if o.c.SignatureEncoding != "raw" {
		return ecdsa.SignASN1(rand.Reader, o.signer, hash)
	}
	r, s, err := ecdsa.Sign(rand.Reader, o.signer, hash)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 64)
	r.FillBytes(out[:32])
	s.FillBytes(out[32:])
	return out, nil
}

// pathPrefix returns the base URL's path, usually "".
func (o *Operator) pathPrefix() string {
	_, rest, _ := strings.Cut(o.base, "://")
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:]
	}
	return ""
}
