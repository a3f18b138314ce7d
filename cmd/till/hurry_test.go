package main

import (
	"fmt"
	"os"
	"time"

	"till/cmd/till/internal/cli"
	"till/operators"
	"till/provider"
	"till/provider/airtel"
	"till/provider/mpesa"
	"till/provider/mtnmomo"
	"till/provider/pawapay"
)

// Operators take minutes where a test has seconds. Here the adapters of the
// program are wrapped so that they say so of themselves; what they send and
// read stays their own. Only tests have this: a live connection that took "not
// found" for a proof after two seconds would charge customers twice.

// hurriedAdapters are all that the program has.
var hurriedAdapters = operators.Adapters{
	"mtnmomo": hurriedOf(mtnmomo.New),
	"airtel":  hurriedOf(airtel.New),
	"pawapay": hurriedOf(pawapay.New),
	"mpesa":   hurriedOf(mpesa.New),
}

// hurriedWindow names the window of all operators, where a test wants another.
const hurriedWindow = "HURRIED_WINDOW"

// serveHurried is 'till serve' with them, as a program of its own.
func serveHurried() {
	cmd := serveOf(hurriedAdapters)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(os.Args[1:])
	if err := cmd.ExecuteContext(untilSignal()); err != nil {
		fmt.Fprintln(os.Stderr, "till-hurried:", err)
		os.Exit(cli.ExitUnable)
	}
}

// operator is what adapters open.
type operator interface {
	Payments() provider.Provider
	Payouts() provider.Provider
}

// hurriedAccount is one whose operator is quick.
type hurriedAccount struct{ operator }

func hurriedOf[C any, A operator](open func(C, provider.Deps) (A, error)) operators.Adapter {
	return operators.AdapterOf(func(c C, d provider.Deps) (*hurriedAccount, error) {
		a, err := open(c, d)
		return &hurriedAccount{a}, err
	})
}

// Payments returns the provider of payments.
func (a *hurriedAccount) Payments() provider.Provider { return shorten(a.operator.Payments()) }

// Payouts returns the provider of payouts.
func (a *hurriedAccount) Payouts() provider.Provider { return shorten(a.operator.Payouts()) }

type hurried struct{ provider.Provider }

// ReadClaim implements provider.ClaimReader.
func (h *hurried) ReadClaim(body []byte) (provider.Claim, bool) {
	return h.Provider.(provider.ClaimReader).ReadClaim(body) // all adapters of the program are
}

type hurriedCalled struct {
	hurried
	called provider.CallbackReader
}

// ReadCallback implements provider.CallbackReader.
func (h *hurriedCalled) ReadCallback(c provider.CallbackRequest) (provider.Callback, error) {
	return h.called.ReadCallback(c)
}

func shorten(p provider.Provider) provider.Provider {
	if p == nil {
		return nil
	}
	if called, ok := p.(provider.CallbackReader); ok {
		return &hurriedCalled{hurried{p}, called}
	}
	return &hurried{p}
}

// Traits implements provider.Provider. The window leaves time to send again
// what a dead process held for the length of its lease.
func (h *hurried) Traits() provider.Traits {
	t := h.Provider.Traits()
	t.ApprovalWindow = 20 * time.Second
	if !t.ClientReference {
		t.ApprovalWindow = 10 * time.Second // it is never sent again
	}
	if d, err := time.ParseDuration(os.Getenv(hurriedWindow)); err == nil {
		t.ApprovalWindow = d
	}
	t.SubmitTimeout, t.CheckTimeout = 2*time.Second, 2*time.Second
	t.NotFoundDelay, t.Poll, t.PollMax, t.Grace = 2*time.Second, 400*time.Millisecond, 2*time.Second, 2*time.Second
	// The last is as far off as ever: 'till verify' wants it made or planned.
	t.LateReads = []time.Duration{time.Second, 3 * time.Second, 6 * time.Second, 10 * time.Second, t.LateReads[len(t.LateReads)-1]}
	t.SubmitRate.PerSecond *= 10
	t.CheckRate.PerSecond *= 10
	return t
}
