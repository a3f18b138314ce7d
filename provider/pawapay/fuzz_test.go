package pawapay

import (
	"slices"
	"strings"
	"testing"

	"till/provider"
	"till/provider/providertest"
)

// seed adds the golden answers, whole and cut.
func seed(f *testing.F, add func(body []byte)) {
	for _, name := range []string{"deposit_accepted", "deposit_rejected", "deposit_invalid", "deposit_status_completed", "deposit_status_failed",
		"deposit_status_missing", "payout_status_enqueued", "refund_accepted", "refund_rejected", "refund_status_completed"} {
		body := providertest.ReadExchange(&testing.T{}, "testdata/"+name+".txt").Body(0)
		add(body)
		add(body[:len(body)/2])
	}
}

// FuzzCheck: no answer panics, and only pawaPay's own words end anything.
func FuzzCheck(f *testing.F) {
	seed(f, func(body []byte) { f.Add(200, body) })
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, k := range []*serviceKind{&deposits, &payouts, &refunds} {
			r, err := readCheck(k, status, body, testID)
			if err != nil && r != (provider.Result{}) {
				t.Fatalf("a result beside the error: %+v", r)
			}
			if err != nil {
				continue
			}
			text := string(body)
			switch {
			case status != 200:
				t.Fatalf("HTTP %d is the verdict %+v", status, r)
			case r.Outcome == provider.Success && (!saying(text, "COMPLETED") || r.Amount.IsZero() || r.Amount.Minor < 0):
				t.Fatalf("success of %q: %+v", text, r)
			case r.Outcome == provider.Failed && (!saying(text, "FAILED") || r.Reason == ""):
				t.Fatalf("failure of %q: %+v", text, r)
			case r.Outcome == provider.NotFound && !saying(text, "NOT_FOUND"):
				t.Fatalf("not found of %q", text)
			case r.Outcome.ProvesReceived() && !strings.EqualFold(r.Reference, testID):
				t.Fatalf("another reference: %+v", r)
			case !slices.Contains([]provider.Outcome{provider.Open, provider.NotFound, provider.Unrecognised, provider.Success, provider.Failed}, r.Outcome):
				t.Fatalf("outcome %q", r.Outcome)
			}
		}
	})
}

// saying tells whether a text has a word, or escapes that could be one.
func saying(text, word string) bool {
	return strings.Contains(text, word) || strings.Contains(text, `\u`)
}

// FuzzSubmit: no answer panics, and only pawaPay's own words mean anything.
func FuzzSubmit(f *testing.F) {
	seed(f, func(body []byte) { f.Add(200, body); f.Add(400, body) })
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, k := range []*serviceKind{&deposits, &payouts, &refunds} {
			r, err := readSubmit(k, status, body, testID)
			if err != nil {
				if r != (provider.Result{}) {
					t.Fatalf("a result beside the error: %+v", r)
				}
				continue
			}
			word := map[provider.Outcome]string{provider.Accepted: "ACCEPTED", provider.Duplicate: "DUPLICATE_IGNORED", provider.Rejected: r.Code}[r.Outcome]
			if word == "" || status != 200 && status != 400 || status == 400 && r.Outcome != provider.Rejected || !saying(string(body), word) && !strings.Contains(string(body), `\`) {
				t.Fatalf("%d %q is the verdict %+v", status, body, r)
			}
		}
	})
}

// FuzzCallback: no callback panics, and none without an id of ours wakes
// anything.
func FuzzCallback(f *testing.F) {
	f.Add([]byte(callbackBody))
	seed(f, func(body []byte) { f.Add(body) })
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, k := range []*serviceKind{&deposits, &payouts, &refunds} {
			if c, err := readCallback(k, body); err == nil && c.Reference.IsZero() && !strings.Contains(string(body), "00000000") {
				t.Fatalf("%q wakes nobody", body)
			}
		}
	})
}

// FuzzSignature: no header panics, and none passes.
func FuzzSignature(f *testing.F) {
	f.Add(`sig-pp=("@method" "@authority" "@path" "signature-date" "content-digest" "content-type");alg="ecdsa-p256-sha256";keyid="k";created=1714664205;expires=1714664265`,
		"sig-pp=:"+rfcSignature+":", "sha-256=:AAAA:", "/callbacks/x?a=%zz", []byte(callbackBody))
	f.Add(`sig-pp=();keyid="k"`, "sig-pp=::", "", "", []byte(nil))
	f.Add(`sig-pp=("content-digest");created=1;keyid="k";nonce="`, "sig-pp=:AA==:", "sha-512=", "*", []byte("{}"))
	keys, err := readKeys([]byte(`[{"id":"k","key":` + quoted(rfcKey) + `}]`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, input, signature, digest, path string, body []byte) {
		c := provider.CallbackRequest{Method: "POST", URL: "https://till.example" + path, Body: body, Header: map[string][]string{
			"Signature-Input": {input}, "Signature": {signature}, "Content-Digest": {digest}, "Content-Type": {"application/json"}}}
		in, err := parseSignatureInput(input)
		if err != nil {
			return
		}
		if in.keyID == "" || len(in.components) > maxComponents || "sig-pp="+in.params != input {
			t.Fatalf("%q is read as %+v", input, in)
		}
		in.checkFresh(goldenNow)
		checkDigest(digest, body)
		base, err := in.signatureBase(c, "till.example")
		if err != nil {
			return
		}
		sig, err := parseSignature(signature)
		if err == nil && checkSignature(keys["k"], in.alg, []byte(base), sig) {
			t.Fatalf("a signature that nobody made passes: %q over %q", signature, base)
		}
	})
}

// FuzzKeys: no list of keys panics.
func FuzzKeys(f *testing.F) {
	f.Add([]byte(`[{"id":"k","key":` + quoted(rfcKey) + `}]`))
	f.Add([]byte(`[{"id":1,"key":null},{}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if keys, err := readKeys(body); err == nil && len(keys) > maxKeys {
			t.Fatalf("%d keys", len(keys))
		}
	})
}
