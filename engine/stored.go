package engine

import "till"

// storedRows is what a payment or payout takes beside its document: its rows in
// all tables over its life, about as many bytes as measured (docs/guide/growing.md).
const storedRows = 2 << 10

// StoredBytes returns how many bytes a new payment or payout of a client makes
// us keep. They are counted of test clients only: what a live client stores is
// its business and ours.
func StoredBytes(c *till.Client, document []byte) int64 {
	if c.Mode != till.Test {
		return 0
	}
	return storedRows + int64(len(document))
}
