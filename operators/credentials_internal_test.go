package operators

import (
	"context"
	"errors"
	"testing"
	"time"

	"till/config"
	"till/provider"
)

// plain is a provider with nothing beyond what it must have.
type plain struct{ err error }

func (p *plain) Submit(context.Context, provider.Request) (provider.Result, error) {
	return provider.Result{}, p.err
}
func (p *plain) Check(context.Context, provider.Query) (provider.Result, error) {
	return provider.Result{}, p.err
}
func (p *plain) Traits() provider.Traits { return provider.Traits{Poll: time.Second} }
func (p *plain) Fingerprint() string     { return "plain" }

type called struct{ *plain }

func (called) ReadCallback(provider.CallbackRequest) (provider.Callback, error) {
	return provider.Callback{Handle: "called"}, nil
}

type handled struct{ *plain }

func (handled) HandleInCallback([]byte) string { return "handled" }

type everything struct {
	called
	handled
}

func (everything) Submit(context.Context, provider.Request) (provider.Result, error) {
	return provider.Result{}, nil
}
func (everything) Check(context.Context, provider.Query) (provider.Result, error) {
	return provider.Result{}, nil
}
func (everything) Traits() provider.Traits                      { return provider.Traits{} }
func (everything) Fingerprint() string                          { return "everything" }
func (everything) Serves(method, country, currency string) bool { return country == "CG" }
func (everything) SendDelay(provider.Request) time.Duration     { return time.Hour }
func (everything) ReadClaim([]byte) (c provider.Claim, ok bool) {
	return provider.Claim{Receipt: "r"}, true
}

// The engine and the API ask whether a provider reads callbacks and handles. One whose
// credentials can be renewed has what it had before, no more and no less.
func TestARenewedProviderHasWhatItHadBefore(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]provider.Provider{
		"plain": &plain{}, "called": called{&plain{}}, "handled": handled{&plain{}}, "everything": everything{},
	} {
		wrapped := newRenewed(p, nil, func(error) {}).asProvider()
		reader, reads := p.(provider.CallbackReader)
		if got, ok := wrapped.(provider.CallbackReader); ok != reads {
			t.Errorf("%s: it reads callbacks: %v, want %v", name, ok, reads)
		} else if ok {
			want, _ := reader.ReadCallback(provider.CallbackRequest{})
			if c, err := got.ReadCallback(provider.CallbackRequest{}); err != nil || c != want {
				t.Errorf("%s: got %+v, %v", name, c, err)
			}
		}
		_, hands := p.(provider.HandleReader)
		if got, ok := wrapped.(provider.HandleReader); ok != hands || ok && got.HandleInCallback(nil) != "handled" {
			t.Errorf("%s: it reads handles: %v, want %v", name, ok, hands)
		}
		_, all := p.(everything)
		if provider.Serves(wrapped, "mtn_momo", "UG", "UGX") == all || !provider.Serves(wrapped, "mtn_momo", "CG", "XAF") {
			t.Errorf("%s: it serves other countries than before", name)
		}
		if d := wrapped.(provider.Delayer).SendDelay(provider.Request{}); (d == time.Hour) != all {
			t.Errorf("%s: it delays by %v", name, d)
		}
		if _, ok := wrapped.(provider.ClaimReader).ReadClaim(nil); ok != all {
			t.Errorf("%s: it reads claims: %v", name, ok)
		}
		if wrapped.Fingerprint() != p.Fingerprint() || wrapped.Traits().Poll != p.Traits().Poll {
			t.Errorf("%s: it is another account", name)
		}
	}
}

// Each call's error is noted, and a provider of another account does not fit.
func TestARenewedProviderNotesErrors(t *testing.T) {
	t.Parallel()
	var noted []error
	r := newRenewed(&plain{provider.ErrCredentials}, nil, func(err error) { noted = append(noted, err) })
	r.Submit(t.Context(), provider.Request{})
	r.Check(t.Context(), provider.Query{})
	if len(noted) != 2 || !errors.Is(noted[0], provider.ErrCredentials) || !errors.Is(noted[1], provider.ErrCredentials) {
		t.Errorf("noted %v", noted)
	}
	if r.fits(everything{}) || r.fits(nil) || !r.fits(&plain{}) || !(*renewed)(nil).fits(nil) || (*renewed)(nil).fits(&plain{}) {
		t.Error("an account fits that is another one, or its own does not")
	}
	r.swap(&plain{}, nil)
	if _, err := r.Check(t.Context(), provider.Query{}); err != nil {
		t.Errorf("after the swap: %v", err)
	}
}

// An operator that refuses every call does not make us run a command for each of them.
func TestCredentialsAreReadAtMostOnceAMinute(t *testing.T) {
	t.Parallel()
	a := &liveAccount{connection: &config.Connection{Name: "mtn"}}
	k := &Credentials{accounts: []*liveAccount{a}}
	read := func(all bool) bool {
		a.refused.Store(true)
		k.Look(t.Context(), all)
		return !a.refused.Load()
	}
	if !read(false) {
		t.Error("they are not read after the first refusal")
	}
	if read(false) {
		t.Error("they are read twice within a minute")
	}
	if !read(true) {
		t.Error("they are not read although a person asks")
	}
	a.readAt = a.readAt.Add(-rereadInterval)
	if !read(false) {
		t.Error("they are not read a minute later")
	}
}
