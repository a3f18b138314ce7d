package people

import (
	"log/slog"
	"net/netip"

	"till/store"
)

// Config is what People are made of.
type Config struct {
	Store  *store.Store
	Secret []byte // the installation's

	// Origin is where browsers see the console, "https://pay.example.com".
	// Passkeys are bound to it. "" leaves passkeys unused.
	Origin string

	// HouseNetworks bound where the house's people may sign in from; none
	// means anywhere.
	HouseNetworks []netip.Prefix

	Log *slog.Logger // nil means silence
}

// Visit is where a request came from.
type Visit struct {
	Address netip.Addr
	Device  string // what the person reads in the list of sessions: "Firefox, Android"; at most MaxDevice bytes are kept
}

// MaxDevice is the longest description of a device, in bytes.
const MaxDevice = 120
