package airtel

// Method is the wallet that Airtel keeps.
const Method = "airtel_money"

// Serves implements provider.Selective: one connection is one country.
func (p *service) Serves(method, country, currency string) bool {
	return method == Method && country == p.country.Code && currency == p.currency
}
