package airtel_test

import (
	"testing"

	"till/provider"
	"till/provider/airtel"
	"till/provider/providertest"
)

func TestConversations(t *testing.T) {
	w := newWorld(t, airtel.SimConfig{}, nil)
	providertest.Replay(t, "testdata", func(t *testing.T, url string, tokens provider.Tokens) (provider.Provider, provider.Provider) {
		c := w.c
		c.BaseURL = url
		o, err := airtel.New(c, provider.Deps{Tokens: tokens})
		if err != nil {
			t.Fatal(err)
		}
		return o.Payments(), o.Payouts()
	})
}
