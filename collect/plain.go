package collect

import "till/internal/jsonx"

var _ jsonx.PlainDecoder = (*Request)(nil) // or Decode would not ask it

// DecodePlain implements jsonx.PlainDecoder: what shops send every day is read
// here in less than half of the time. A member that Request learns is added here
// too; until then, bodies that have it take the long way.
func (r *Request) DecodePlain(data []byte) bool {
	p, got := jsonx.NewPlain(data), *r
	p.Object(func(name string) {
		switch name {
		case "customer":
			jsonx.PlainObject(p, &got.Customer, (*Customer).readPlain)
		case "charge":
			jsonx.PlainObject(p, &got.Charge, (*ChargeRequest).readPlain)
		case "tax":
			jsonx.PlainObject(p, &got.Tax, (*TaxRequest).readPlain)
		default:
			got.ReadPlain(p, name)
		}
	})
	if !p.Done() {
		return false
	}
	*r = got
	return true
}

func (c *Customer) readPlain(p *jsonx.Plain, name string) {
	switch name {
	case "phone":
		p.Text(&c.Phone)
	case "name":
		p.Text(&c.Name)
	case "email":
		p.Text(&c.Email)
	default:
		p.GiveUp()
	}
}

func (c *ChargeRequest) readPlain(p *jsonx.Plain, name string) {
	switch name {
	case "items":
		if c.Items != nil {
			p.GiveUp()
			return
		}
		items := []ItemRequest{} // not nil: an empty list differs from none
		p.Array(func() {
			items = append(items, ItemRequest{})
			it := &items[len(items)-1]
			p.Object(func(name string) { it.readPlain(p, name) })
		})
		c.Items = &items
	case "subtotal":
		p.Text(&c.Subtotal)
	default:
		p.GiveUp()
	}
}

func (it *ItemRequest) readPlain(p *jsonx.Plain, name string) {
	switch name {
	case "name":
		p.Text(&it.Name)
	case "quantity":
		p.Whole(&it.Quantity.literal)
	case "unit_price":
		p.Text(&it.UnitPrice)
	case "total":
		p.Text(&it.Total)
	default:
		p.GiveUp()
	}
}

func (t *TaxRequest) readPlain(p *jsonx.Plain, name string) {
	switch name {
	case "inclusive":
		p.Flag(&t.Inclusive)
	case "amount":
		p.Text(&t.Amount)
	case "rate":
		p.Text(&t.Rate)
	case "type":
		p.Text(&t.Type)
	default:
		p.GiveUp()
	}
}
