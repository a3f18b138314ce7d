package till

import "strconv"

// Limits of a charge and a tax.
const (
	MaxItems    = 500 // items of a charge; at least one is needed
	MaxItemName = 255 // characters
	MaxTaxType  = 32  // characters
)

// Item is one line of a charge.
type Item struct {
	Name      string
	Quantity  string // the JSON number literal as sent
	UnitPrice int64  // minor units
	Total     int64  // minor units; Quantity times UnitPrice, exactly
}

// Charge is what the client says the amount is for: recorded for receipts
// and reports, and checked to add up.
type Charge struct {
	Items    []Item
	Subtotal *int64 // minor units; nil where not sent
}

// Tax is the tax that the client worked out. The service records it and
// checks the sums; it never computes a tax nor judges a rate.
type Tax struct {
	Inclusive bool  // the amount already contains the tax
	Amount    int64 // minor units
	Rate      string
	Type      string
}

// CheckCharge checks that amount, charge and tax agree and returns every rule
// that is broken, nil if none is. c and t are nil where not sent. A charge
// without tax may differ from the amount (delivery, a deposit): that is
// recorded, not judged.
func CheckCharge(amount int64, c *Charge, t *Tax) []FieldError {
	var broken []FieldError
	var subtotal *int64
	if c != nil {
		broken = checkItems(c)
		subtotal = c.Subtotal
	}
	switch {
	case t == nil:
		return broken
	case t.Inclusive:
		return append(broken, checkInclusive(amount, subtotal, t)...)
	}
	return append(broken, checkExclusive(amount, subtotal, t)...)
}

func checkItems(c *Charge) []FieldError {
	var broken []FieldError
	sum, fits := int64(0), true
	for i := range c.Items {
		item := &c.Items[i]

		// A literal that does not parse cannot come from a request, but it can
		// from a damaged row, which must not pass for a good one.
		if q, ok := ParseQuantity(item.Quantity); !ok || !q.Gives(item.UnitPrice, item.Total) {
			broken = append(broken, FieldError{
				Pointer: "/charge/items/" + strconv.Itoa(i) + "/total",
				Code:    FieldLineItemMismatch,
				Detail:  "The total of an item must be exactly its quantity times its unit price.",
			})
		}

		if fits {
			sum, fits = addMinor(sum, item.Total)
		}
	}
	if c.Subtotal != nil && (!fits || sum != *c.Subtotal) {
		broken = append(broken, FieldError{
			Pointer: "/charge/subtotal",
			Code:    FieldItemsSumMismatch,
			Detail:  "The subtotal must be the sum of the totals of all items.",
		})
	}
	return broken
}

func checkInclusive(amount int64, subtotal *int64, t *Tax) []FieldError {
	var broken []FieldError
	if subtotal != nil && *subtotal != amount {
		broken = append(broken, FieldError{
			Pointer: "/charge/subtotal",
			Code:    FieldTaxSubtotalMismatch,
			Detail:  "When tax is inclusive, the subtotal must equal the amount.",
		})
	}
	if t.Amount < 0 || t.Amount > amount {
		broken = append(broken, FieldError{
			Pointer: "/tax/amount",
			Code:    FieldTaxTotalMismatch,
			Detail:  "When tax is inclusive, it is a part of the amount and cannot be more than it.",
		})
	}
	return broken
}

func checkExclusive(amount int64, subtotal *int64, t *Tax) []FieldError {
	if subtotal == nil {
		return []FieldError{{
			Pointer: "/charge/subtotal",
			Code:    FieldTaxSubtotalRequired,
			Detail:  "When tax is not inclusive, the subtotal before tax is required.",
		}}
	}
	if sum, ok := addMinor(*subtotal, t.Amount); !ok || sum != amount {
		return []FieldError{{
			Pointer: "/amount/value",
			Code:    FieldTaxTotalMismatch,
			Detail:  "When tax is not inclusive, the amount must be the subtotal plus the tax.",
		}}
	}
	return nil
}
