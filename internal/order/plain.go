package order

import "till/internal/jsonx"

// ReadPlain reads the member name of a plain body, and gives up on one that is
// not among those that the bodies have alike.
func (b *Body) ReadPlain(p *jsonx.Plain, name string) {
	switch name {
	case "method":
		p.Text(&b.Method)
	case "country":
		p.Text(&b.Country)
	case "amount":
		jsonx.PlainObject(p, &b.Amount, (*Amount).readPlain)
	case "idempotency_key":
		p.Text(&b.IdempotencyKey)
	case "reference":
		p.Text(&b.Reference)
	case "description":
		p.Text(&b.Description)
	case "metadata":
		p.Raw(&b.Metadata.Raw)
	default:
		p.GiveUp()
	}
}

func (a *Amount) readPlain(p *jsonx.Plain, name string) {
	switch name {
	case "value":
		p.Text(&a.Value)
	case "currency":
		p.Text(&a.Currency)
	default:
		p.GiveUp()
	}
}
