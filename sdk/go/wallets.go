package till

import "context"

// Wallets are the calls about wallets.
type Wallets struct{ c *Client }

// List returns your wallets, one per currency.
func (s *Wallets) List(ctx context.Context) (*WalletList, error) {
	return read[WalletList](ctx, s.c, request{op: opListWallets})
}
