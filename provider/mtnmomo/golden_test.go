package mtnmomo_test

import (
	"testing"

	"till/provider"
	"till/provider/mtnmomo"
	"till/provider/providertest"
)

func TestConversations(t *testing.T) {
	providertest.Replay(t, "testdata", func(t *testing.T, url string, tokens provider.Tokens) (provider.Provider, provider.Provider) {
		c := congo(url)
		c.CallbackHost = "pay.example.com"
		o, err := mtnmomo.New(c, provider.Deps{Tokens: tokens})
		if err != nil {
			t.Fatal(err)
		}
		return o.Payments(), o.Payouts()
	})
}
