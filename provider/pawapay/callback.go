package pawapay

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"till"
	"till/provider"
	"till/provider/wire"
)

// The limits of a signature.
const (
	maxSigHeader  = 4096
	maxComponents = 16
	// sigSkew is how far clocks may be apart.
	sigSkew = time.Minute
	// sigAge is how old a signature without an end may be: pawaPay tries callbacks for 15
	// minutes.
	sigAge = 20 * time.Minute
)

// errSignature marks a callback that is not pawaPay's.
var errSignature = errors.New("the signature of a callback")

// errNoAuthority says that the host under which pawaPay calls us is not configured. pawaPay
// signs it.
var errNoAuthority = errors.New("it cannot be verified without callback_authorities or the public address of this service")

// ReadCallback reads a callback. If signatures are verified, a callback without a valid one
// is rejected; if not, any is accepted. Either way it is only a hint: it causes a check,
// and its content is not trusted.
func (s *service) ReadCallback(c provider.CallbackRequest) (provider.Callback, error) {
	if s.c.VerifyCallbacks {
		if err := s.verify(c); err != nil {
			return provider.Callback{}, fmt.Errorf("pawapay: %w", err)
		}
	}
	return s.readCallback(c.Body)
}

// readCallback reads a callback about this kind. The service of payouts gets those of refunds,
// too: they are its requests.
func (s *service) readCallback(body []byte) (provider.Callback, error) {
	c, err := readCallback(s.kind, body)
	if err != nil && s.kind == &payouts {
		return readCallback(&refunds, body)
	}
	return c, err
}

// readCallback returns what a callback is about.
func readCallback(k *serviceKind, body []byte) (provider.Callback, error) {
	var d transferState
	if err := wire.Decode(body, &d); err != nil {
		return provider.Callback{}, fmt.Errorf("pawapay: a callback: %w", err)
	}
	id, err := till.ParseID(strings.ToLower(referenceOf(k, d.RefundID, d.DepositID, d.PayoutID)))
	if err != nil || k == &deposits && d.RefundID != "" { // it may name the deposit that it gives back
		return provider.Callback{}, fmt.Errorf("pawapay: a callback without a %s", k.id)
	}
	return provider.Callback{Reference: id}, nil
}

// ReadClaim reads what a callback says.
func (s *service) ReadClaim(body []byte) (provider.Claim, bool) {
	told, err := s.readCallback(body)
	if err != nil {
		return provider.Claim{}, false
	}
	var d transferState
	if err := wire.Decode(body, &d); err != nil {
		return provider.Claim{}, false
	}
	c := provider.Claim{Reference: told.Reference, Receipt: wire.Truncate(string(d.ProviderTransactionID), maxCode)}
	if o := statusOutcomes[string(d.Status)]; o.Final() {
		c.Outcome = o
	}
	c.Amount, _ = parseMoney(&d)
	return c, true
}

// verify checks the RFC 9421 signature of a callback.
func (o *Operator) verify(c provider.CallbackRequest) error {
	if len(o.callbackHosts) == 0 {
		return fmt.Errorf("%w: %w", errSignature, errNoAuthority)
	}
	in, err := parseSignatureInput(header(c, "Signature-Input"))
	if err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	sig, err := parseSignature(header(c, "Signature"))
	if err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	if err := in.checkFresh(o.now()); err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	if !slices.Contains(in.components, "content-digest") {
		return fmt.Errorf("%w does not cover content-digest: the body could be anybody's", errSignature)
	}
	if err := checkDigest(header(c, "Content-Digest"), c.Body); err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	key, err := o.keys.key(in.keyID)
	if err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	hosts := o.callbackHosts
	if !slices.Contains(in.components, "@authority") && !slices.Contains(in.components, "@target-uri") {
		hosts = hosts[:1] // the base is the same for all hosts
	}
	for _, host := range hosts {
		base, err := in.signatureBase(c, host)
		if err != nil {
			return fmt.Errorf("%w: %w", errSignature, err)
		}
		if checkSignature(key, in.alg, []byte(base), sig) {
			return nil
		}
	}
	return fmt.Errorf("%w is wrong", errSignature)
}

// header returns a header's values joined into one, as RFC 9421 says.
func header(c provider.CallbackRequest, name string) string {
	values := c.Header[name]
	if len(values) == 1 {
		return strings.TrimSpace(values[0])
	}
	trimmed := make([]string, len(values))
	for i, v := range values {
		trimmed[i] = strings.TrimSpace(v)
	}
	return strings.Join(trimmed, ", ")
}

// signatureInput is the parsed Signature-Input header.
type signatureInput struct {
	components       []string
	params           string // verbatim: what follows the label
	alg, keyID       string
	created, expires int64 // 0 if absent
}

var errSignatureInput = errors.New("Signature-Input cannot be read")

// parseSignatureInput parses `sig-pp=("a" "b");alg="…";keyid="…";created=1;expires=2`. It
// rejects everything that it does not understand.
func parseSignatureInput(text string) (*signatureInput, error) {
	rest, ok := strings.CutPrefix(text, sigLabel+"=(")
	if len(text) > maxSigHeader || !ok {
		return nil, errSignatureInput
	}
	list, rest, ok := strings.Cut(rest, ")")
	if !ok {
		return nil, errSignatureInput
	}
	in := &signatureInput{params: text[len(sigLabel)+1:]}
	for _, item := range strings.Fields(list) {
		name := strings.TrimSuffix(strings.TrimPrefix(item, `"`), `"`)
		if len(item) != len(name)+2 || name == "" || strings.ContainsAny(name, `"\;`) || slices.Contains(in.components, name) {
			return nil, errSignatureInput
		}
		if in.components = append(in.components, name); len(in.components) > maxComponents {
			return nil, errSignatureInput
		}
	}
	seen := map[string]bool{}
	for rest != "" {
		var name, value string
		if rest, ok = strings.CutPrefix(rest, ";"); !ok {
			return nil, errSignatureInput
		}
		if name, rest, ok = strings.Cut(rest, "="); !ok || seen[name] {
			return nil, errSignatureInput
		}
		seen[name] = true
		quoted := strings.HasPrefix(rest, `"`)
		if quoted {
			if value, rest, ok = strings.Cut(rest[1:], `"`); !ok || strings.Contains(value, `\`) {
				return nil, errSignatureInput
			}
		} else {
			end := strings.IndexByte(rest, ';')
			if end < 0 {
				end = len(rest)
			}
			value, rest = rest[:end], rest[end:]
		}
		if err := in.set(name, value, quoted); err != nil {
			return nil, err
		}
	}
	if in.keyID == "" {
		return nil, errSignatureInput
	}
	return in, nil
}

func (in *signatureInput) set(name, value string, quoted bool) (err error) {
	switch {
	case name == "alg" && quoted:
		in.alg = value
	case name == "keyid" && quoted:
		in.keyID = value
	case (name == "nonce" || name == "tag") && quoted:
	case name == "created" && !quoted:
		in.created, err = strconv.ParseInt(value, 10, 64)
	case name == "expires" && !quoted:
		in.expires, err = strconv.ParseInt(value, 10, 64)
	default:
		return errSignatureInput
	}
	if err != nil || in.created < 0 || in.expires < 0 {
		return errSignatureInput
	}
	return nil
}

// checkFresh rejects a signature that has expired, or that has neither a creation time nor
// an end.
func (in *signatureInput) checkFresh(now time.Time) error {
	at := now.Unix()
	skew, age := int64(sigSkew/time.Second), int64(sigAge/time.Second)
	switch {
	case in.created == 0:
		return errors.New("it does not say when it was made")
	case in.created > at+skew:
		return errors.New("it was made in the future")
	case in.expires != 0 && in.expires < at-skew:
		return errors.New("it has expired")
	case in.expires == 0 && in.created < at-age:
		return errors.New("it is too old")
	}
	return nil
}

// signatureBase returns the text that was signed, from the components in the header, in
// their order.
func (in *signatureInput) signatureBase(c provider.CallbackRequest, host string) (string, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", errors.New("the address cannot be read")
	}
	var b strings.Builder
	for _, name := range in.components {
		var value string
		switch {
		case name == "@method":
			value = c.Method
		case name == "@authority":
			value = host
		case name == "@path":
			if value = u.EscapedPath(); value == "" {
				value = "/"
			}
		case name == "@query":
			value = "?" + u.RawQuery
		case name == "@scheme":
			value = "https"
		case name == "@target-uri":
			value = "https://" + host + u.RequestURI()
		case strings.HasPrefix(name, "@"):
			return "", fmt.Errorf("component %q is not known", wire.Truncate(name, 40))
		default:
			if value, err = coveredHeader(c, name); err != nil {
				return "", err
			}
		}
		b.WriteString(`"` + name + `": ` + value + "\n")
	}
	b.WriteString(`"@signature-params": ` + in.params)
	return b.String(), nil
}

// coveredHeader returns the value of a signed header. It must be there: otherwise a proxy
// could remove it.
func coveredHeader(c provider.CallbackRequest, name string) (string, error) {
	canonical := http.CanonicalHeaderKey(name)
	if name != strings.ToLower(name) {
		return "", errSignatureInput
	}
	if len(c.Header[canonical]) == 0 {
		if name == "content-length" { // net/http may keep it separately
			return strconv.Itoa(len(c.Body)), nil
		}
		return "", fmt.Errorf("header %q is covered and missing", wire.Truncate(name, 40))
	}
	return header(c, canonical), nil
}

// parseSignature parses `sig-pp=:<base64>:`.
func parseSignature(text string) ([]byte, error) {
	inner, ok := strings.CutPrefix(text, sigLabel+"=:")
	inner, end := strings.CutSuffix(inner, ":")
	if !ok || !end || len(text) > maxSigHeader {
		return nil, errors.New("Signature cannot be read")
	}
	sig, err := base64.StdEncoding.DecodeString(inner)
	if err != nil || len(sig) == 0 {
		return nil, errors.New("Signature cannot be read")
	}
	return sig, nil
}

// checkDigest compares Content-Digest with the body. Each digest of a known kind must be
// right, and there must be one.
func checkDigest(text string, body []byte) error {
	if len(text) > maxSigHeader {
		return errors.New("Content-Digest is too long")
	}
	known := 0
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var sum []byte
		switch name {
		case "sha-256":
			s := sha256.Sum256(body)
			sum = s[:]
		case "sha-512":
			s := sha512.Sum512(body)
			sum = s[:]
		default:
			continue
		}
		known++
		if value != ":"+base64.StdEncoding.EncodeToString(sum)+":" {
			return errors.New("Content-Digest is not that of the body")
		}
	}
	if known == 0 {
		return errors.New("Content-Digest is missing")
	}
	return nil
}

// checkSignature verifies a signature by the algorithm that it names, which must fit the
// key; without a name the key decides. It accepts both encodings of ECDSA: RFC 9421 says r
// and s side by side, pawaPay's examples write ASN.1.
func checkSignature(key crypto.PublicKey, alg string, base, sig []byte) bool {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		switch bits := k.Curve.Params().BitSize; {
		case bits == 256 && (alg == "" || alg == "ecdsa-p256-sha256"):
			sum := sha256.Sum256(base)
			return checkECDSA(k, sum[:], sig, 32)
		case bits == 384 && (alg == "" || alg == "ecdsa-p384-sha384"):
			sum := sha512.Sum384(base)
			return checkECDSA(k, sum[:], sig, 48)
		}
	case *rsa.PublicKey:
		switch alg {
		case "rsa-v1_5-sha256":
			sum := sha256.Sum256(base)
			return rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], sig) == nil
		case "", "rsa-pss-sha512":
			sum := sha512.Sum512(base)
			return rsa.VerifyPSS(k, crypto.SHA512, sum[:], sig, &rsa.PSSOptions{SaltLength: 64}) == nil
		}
	}
	return false
}

func checkECDSA(k *ecdsa.PublicKey, sum, sig []byte, size int) bool {
	if ecdsa.VerifyASN1(k, sum, sig) {
		return true
	}
	return len(sig) == 2*size && ecdsa.Verify(k, sum, new(big.Int).SetBytes(sig[:size]), new(big.Int).SetBytes(sig[size:]))
}
