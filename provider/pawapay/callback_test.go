package pawapay

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till/provider"
)

// The keys and the signature of RFC 9421, appendix B.1.3 and B.2.4.
const (
	rfcKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lf
w0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==
-----END PUBLIC KEY-----`
	rfcBase = `"@status": 200
"content-type": application/json
"content-digest": sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:
"content-length": 23
"@signature-params": ("@status" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-ecc-p256"`
	rfcSignature = "wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw=="
)

func TestSignatureOfTheRFC(t *testing.T) {
	t.Parallel()
	keys, err := readKeys([]byte(`[{"id":"k","key":` + quoted(rfcKey) + `}]`))
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	sig, err := base64.StdEncoding.DecodeString(rfcSignature)
	if err != nil {
		t.Fatal(err)
	}
	if !checkSignature(keys["k"], "", []byte(rfcBase), sig) {
		t.Error("the signature of the RFC is refused")
	}
	if checkSignature(keys["k"], "", []byte(rfcBase+" "), sig) || checkSignature(keys["k"], "rsa-pss-sha512", []byte(rfcBase), sig) {
		t.Error("another text or another algorithm passes")
	}
	if err := checkDigest("sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:",
		[]byte(`{"message": "good dog"}`)); err != nil {
		t.Errorf("the digest of the RFC: %v", err)
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// caller signs callbacks in one way.
type caller struct {
	alg, id string
	public  crypto.PublicKey
	sign    func(base []byte) []byte
}

func callers(t *testing.T) []caller {
	t.Helper()
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	big, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	must := func(sig []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
	raw := func(k *ecdsa.PrivateKey, sum []byte, size int) []byte {
		r, s, err := ecdsa.Sign(rand.Reader, k, sum)
		return must(append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...), err)
	}
	return []caller{
		{"ecdsa-p256-sha256", "p256", &p256.PublicKey, func(b []byte) []byte { h := sha256.Sum256(b); return must(ecdsa.SignASN1(rand.Reader, p256, h[:])) }},
		{"ecdsa-p256-sha256", "p256", &p256.PublicKey, func(b []byte) []byte { h := sha256.Sum256(b); return raw(p256, h[:], 32) }},
		{"ecdsa-p384-sha384", "p384", &p384.PublicKey, func(b []byte) []byte { h := sha512.Sum384(b); return must(ecdsa.SignASN1(rand.Reader, p384, h[:])) }},
		{"ecdsa-p384-sha384", "p384", &p384.PublicKey, func(b []byte) []byte { h := sha512.Sum384(b); return raw(p384, h[:], 48) }},
		{"rsa-pss-sha512", "rsa", &big.PublicKey, func(b []byte) []byte {
			h := sha512.Sum512(b)
			return must(rsa.SignPSS(rand.Reader, big, crypto.SHA512, h[:], &rsa.PSSOptions{SaltLength: 64}))
		}},
		{"rsa-v1_5-sha256", "rsa", &big.PublicKey, func(b []byte) []byte {
			h := sha256.Sum256(b)
			return must(rsa.SignPKCS1v15(nil, big, crypto.SHA256, h[:]))
		}},
	}
}

const callbackBody = `{"depositId":"9d0b1f4e-6c1a-4f5b-8c3d-2e7a61f0c4b9","status":"COMPLETED","amount":"1000.00","currency":"XAF"}`

// forgery is what an attacker, or a proxy, changes about a callback.
type forgery struct {
	name       string
	components string
	before     func(*provider.CallbackRequest, *string) // the signature parameters, before signing
	after      func(*provider.CallbackRequest)
}

const allComponents = `"@method" "@authority" "@path" "signature-date" "content-digest" "content-type"`

// signedCall is a callback as pawaPay makes it, with a forgery.
func signedCall(c caller, f forgery) provider.CallbackRequest {
	sum := sha512.Sum512([]byte(callbackBody))
	call := provider.CallbackRequest{Method: "POST", URL: "https://till.example/callbacks/x?a=b", Body: []byte(callbackBody), Header: http.Header{
		"Content-Type": {"application/json"}, "Signature-Date": {"2024-05-02T15:36:45.058799Z"},
		"Content-Digest": {"sha-512=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"},
	}}
	components := f.components
	if components == "" {
		components = allComponents
	}
	params := fmt.Sprintf(`(%s);alg="%s";keyid="%s";created=%d;expires=%d`, components, c.alg, c.id, goldenNow.Unix(), goldenNow.Unix()+60)
	if f.before != nil {
		f.before(&call, &params)
	}
	var base strings.Builder
	for _, name := range strings.Fields(components) {
		value := map[string]string{`"@method"`: "POST", `"@authority"`: "till.example", `"@path"`: "/callbacks/x", `"@query"`: "?a=b",
			`"@target-uri"`: "https://till.example/callbacks/x?a=b", `"@scheme"`: "https",
			`"content-length"`: fmt.Sprint(len(callbackBody))}[name]
		if value == "" {
			value = strings.Join(call.Header[http.CanonicalHeaderKey(strings.Trim(name, `"`))], ", ")
		}
		base.WriteString(name + ": " + value + "\n")
	}
	base.WriteString(`"@signature-params": ` + params)
	call.Header["Signature-Input"] = []string{"sig-pp=" + params}
	call.Header["Signature"] = []string{"sig-pp=:" + base64.StdEncoding.EncodeToString(c.sign([]byte(base.String()))) + ":"}
	if f.after != nil {
		f.after(&call)
	}
	return call
}

func TestCallbackSignatures(t *testing.T) {
	t.Parallel()
	all := callers(t)
	keys := map[string]crypto.PublicKey{}
	for _, c := range all {
		keys[c.id] = c.public
	}
	o := newOperator(t, Config{BaseURL: "https://api.pawapay.io", APIToken: testToken, VerifyCallbacks: true,
		CallbackAuthorities: []string{"other.example", "till.example"}}, func() time.Time { return goldenNow })
	o.keys = newKeyring(o.now, func(context.Context) (map[string]crypto.PublicKey, error) { return keys, nil })
	p := o.Payments().(provider.CallbackReader)
	set := func(name, value string) func(*provider.CallbackRequest) {
		return func(c *provider.CallbackRequest) { c.Header[name] = []string{value} }
	}
	params := func(old, with string) func(*provider.CallbackRequest, *string) {
		return func(_ *provider.CallbackRequest, p *string) { *p = strings.Replace(*p, old, with, 1) }
	}
	good := []forgery{
		{name: "as the examples do"},
		{name: "the length too", components: allComponents + ` "content-length"`},
		{name: "the digest alone", components: `"content-digest"`},
		{name: "everything about the address", components: `"@method" "@target-uri" "@scheme" "@authority" "@path" "@query" "content-digest"`},
		{name: "a nonce and a tag", before: params(";created", `;nonce="0123456789abcdef";tag="pawaPay";created`)},
		{name: "without the algorithm's name", before: func(_ *provider.CallbackRequest, p *string) {
			if !strings.Contains(*p, "v1_5") { // of an RSA key nothing else is meant
				*p = strings.Replace(*p, `;alg="`+between(*p, `alg="`)+`"`, "", 1)
			}
		}},
		{name: "a clock that is half a minute ahead", before: params(fmt.Sprint("created=", goldenNow.Unix()), fmt.Sprint("created=", goldenNow.Unix()+30))},
		{name: "without an end", before: params(fmt.Sprint(";expires=", goldenNow.Unix()+60), "")},
	}
	bad := []forgery{
		{name: "another body", after: func(c *provider.CallbackRequest) { c.Body = []byte(strings.Replace(callbackBody, "1000", "9000", 1)) }},
		{name: "another body with its digest", after: func(c *provider.CallbackRequest) {
			c.Body = []byte(`{"depositId":"9d0b1f4e-6c1a-4f5b-8c3d-2e7a61f0c4b9"}`)
			sum := sha256.Sum256(c.Body)
			c.Header["Content-Digest"] = []string{"sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"}
		}},
		{name: "no digest", after: func(c *provider.CallbackRequest) { delete(c.Header, "Content-Digest") }},
		{name: "a digest of a kind that is not known", after: set("Content-Digest", "md5=:AAAA:")},
		{name: "the digest is not covered", components: `"@method" "@authority" "@path"`},
		{name: "nothing is covered", components: ` `},
		{name: "no signature", after: func(c *provider.CallbackRequest) { delete(c.Header, "Signature") }},
		{name: "no input", after: func(c *provider.CallbackRequest) { delete(c.Header, "Signature-Input") }},
		{name: "an empty signature", after: set("Signature", "sig-pp=::")},
		{name: "a signature of zeros", after: set("Signature", "sig-pp=:"+base64.StdEncoding.EncodeToString(make([]byte, 64))+":")},
		{name: "a signature of zeros for P-384", after: set("Signature", "sig-pp=:"+base64.StdEncoding.EncodeToString(make([]byte, 96))+":")},
		{name: "a signature that is no base64", after: set("Signature", "sig-pp=:***:")},
		{name: "another label", after: set("Signature", "sig1=:AAAA:")},
		{name: "expired", before: params(fmt.Sprint("expires=", goldenNow.Unix()+60), fmt.Sprint("expires=", goldenNow.Unix()-61))},
		{name: "old and without an end", before: func(_ *provider.CallbackRequest, p *string) {
			*p = strings.Replace(*p, fmt.Sprint("created=", goldenNow.Unix()), fmt.Sprint("created=", goldenNow.Unix()-3600), 1)
			*p, _, _ = strings.Cut(*p, ";expires")
		}},
		{name: "of tomorrow", before: params(fmt.Sprint("created=", goldenNow.Unix()), fmt.Sprint("created=", goldenNow.Unix()+86400))},
		{name: "without a time", before: params(fmt.Sprint(";created=", goldenNow.Unix()), "")},
		{name: "a key that nobody has", before: params("keyid=\"", "keyid=\"x")},
		{name: "another algorithm", before: func(_ *provider.CallbackRequest, p *string) {
			*p = strings.Replace(*p, between(*p, `alg="`), "hmac-sha256", 1)
		}},
		{name: "a component that is not known", components: `"@status" "content-digest"`},
		{name: "a component with a parameter", components: `"content-digest";req`},
		{name: "a component twice", components: `"content-digest" "content-digest"`},
		{name: "a header that is missing", components: `"x-missing" "content-digest"`},
		{name: "another method", after: func(c *provider.CallbackRequest) { c.Method = "PUT" }},
		{name: "another path", after: func(c *provider.CallbackRequest) { c.URL = "https://till.example/callbacks/y" }},
		{name: "another type", after: set("Content-Type", "text/plain")},
		{name: "two values of a header", after: func(c *provider.CallbackRequest) { c.Header["Signature-Date"] = []string{"a", "b"} }},
		{name: "a parameter that is not known", before: params(";created", `;sneaky="1";created`)},
		{name: "a parameter twice", before: params(";created", `;keyid="p256";created`)},
		{name: "a huge header", after: set("Signature-Input", "sig-pp=("+strings.Repeat(`"content-digest" `, 1000)+")")},
	}
	for _, c := range all {
		for _, f := range good {
			if got, err := p.ReadCallback(signedCall(c, f)); err != nil || got.Reference.String() != "9d0b1f4e-6c1a-4f5b-8c3d-2e7a61f0c4b9" {
				t.Errorf("%s, %s: %v, %v", c.alg, f.name, got, err)
			}
		}
		for _, f := range bad {
			if _, err := p.ReadCallback(signedCall(c, f)); !errors.Is(err, errSignature) {
				t.Errorf("%s, %s: the error is %v", c.alg, f.name, err)
			}
		}
	}
}

func between(s, mark string) string {
	_, rest, _ := strings.Cut(s, mark)
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

func TestKeyring(t *testing.T) {
	t.Parallel()
	now := goldenNow
	reads, fail := 0, false
	k := newKeyring(func() time.Time { return now }, func(context.Context) (map[string]crypto.PublicKey, error) {
		if reads++; fail {
			return nil, errors.New("away")
		}
		return map[string]crypto.PublicKey{"a": 1}, nil
	})
	want := func(id string, known bool, total int) {
		t.Helper()
		if _, err := k.key(id); (err == nil) != known || reads != total {
			t.Errorf("%q: %v, %d reads, want %d", id, err, reads, total)
		}
	}
	want("a", true, 1)
	want("a", true, 1)
	for range 100 { // anybody can name an id
		want("b", false, 1)
	}
	now = now.Add(minKeyReadInterval)
	want("b", false, 2)
	now = now.Add(keyLife + time.Second)
	want("a", true, 3)
	fail, now = true, now.Add(keyLife+time.Second)
	want("a", false, 4)
	want("a", false, 4)
}

// TestSigned signs requests and callbacks both ways, between the adapter and
// the simulator, over HTTP.
func TestSigned(t *testing.T) {
	t.Parallel()
	key, err := signingKey(goldenKey)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	for _, encoding := range []string{"der", "raw"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			calls := make(chan provider.CallbackRequest, 16)
			here := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				calls <- provider.CallbackRequest{Method: r.Method, URL: "http://" + r.Host + r.URL.RequestURI(), Header: r.Header, Body: body}
			}))
			defer here.Close()
			sim, err := NewSimulator(SimConfig{Token: testToken, Decide: time.Millisecond, DepositCallback: here.URL + "/d", PayoutCallback: here.URL + "/p",
				SignCallbacks: true, RawSignatures: encoding == "raw", ClientKey: public, ClientKeyID: "ours"})
			if err != nil {
				t.Fatal(err)
			}
			defer sim.Close()
			there := httptest.NewServer(sim)
			defer there.Close()
			c := Config{BaseURL: there.URL, APIToken: testToken, Operations: []string{"payments", "payouts"}, SigningKey: goldenKey, SigningKeyID: "ours",
				SignatureEncoding: encoding, VerifyCallbacks: true, CallbackAuthorities: []string{strings.TrimPrefix(here.URL, "http://")}}
			o := newOperator(t, c, time.Now)
			for _, p := range []provider.Provider{o.Payments(), o.Payouts()} {
				r := goldenRequest(t)
				if got, err := p.Submit(t.Context(), r); err != nil || got.Outcome != provider.Accepted {
					t.Fatalf("%+v, %v", got, err)
				}
				call := <-calls
				if back, err := p.(provider.CallbackReader).ReadCallback(call); err != nil || back.Reference != r.Reference {
					t.Errorf("%v, %v", back, err)
				}
				delete(call.Header, "Signature")
				if _, err := p.(provider.CallbackReader).ReadCallback(call); err == nil {
					t.Error("without its signature the callback passes")
				}
				if err := p.(provider.Tester).Test(t.Context()); err != nil {
					t.Errorf("test: %v", err)
				}
			}
			c.SigningKey, c.SigningKeyID = "", ""
			if _, err := newOperator(t, c, time.Now).Payments().Submit(t.Context(), goldenRequest(t)); !errors.Is(err, provider.ErrCredentials) {
				t.Errorf("unsigned: %v, want ErrCredentials", err)
			}
		})
	}
}
