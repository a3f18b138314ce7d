package mtnmomo

// Method is the wallet that MTN keeps.
const Method = "mtn_momo"

// homes are the documented target environments, each with its country and the
// only currency that it takes.
var environmentMarkets = map[string]struct{ country, currency string }{
	"mtnbenin":         {"BJ", "XOF"},
	"mtncameroon":      {"CM", "XAF"},
	"mtncongo":         {"CG", "XAF"},
	"mtnghana":         {"GH", "GHS"},
	"mtnguineabissau":  {"GW", "XOF"},
	"mtnguineaconakry": {"GN", "GNF"},
	"mtnivorycoast":    {"CI", "XOF"},
	"mtnliberia":       {"LR", "LRD"},
	"mtnnigeria":       {"NG", "NGN"},
	"mtnrwanda":        {"RW", "RWF"},
	"mtnsouthafrica":   {"ZA", "ZAR"},
	"mtnsouthsudan":    {"SS", "SSP"},
	"mtnswaziland":     {"SZ", "SZL"},
	"mtnuganda":        {"UG", "UGX"},
	"mtnzambia":        {"ZM", "ZMW"},
}

// Serves implements provider.Selective. An environment that is not documented
// may be anywhere, and MTN's sandbox is nowhere.
func (p *service) Serves(method, country, currency string) bool {
	home, known := environmentMarkets[p.environment]
	return method == Method && (!known || home.country == country && home.currency == currency)
}
