package till_test

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"till"
)

// charge makes a charge; a subtotal below zero means that none was sent.
func charge(subtotal int64, items ...till.Item) *till.Charge {
	c := &till.Charge{Items: items}
	if subtotal >= 0 {
		c.Subtotal = &subtotal
	}
	return c
}

func item(quantity string, unitPrice, total int64) till.Item {
	return till.Item{Name: "Rice", Quantity: quantity, UnitPrice: unitPrice, Total: total}
}

func inclusive(amount int64) *till.Tax {
	return &till.Tax{Inclusive: true, Amount: amount, Rate: "18.00"}
}
func exclusive(amount int64) *till.Tax { return &till.Tax{Amount: amount, Rate: "18.00"} }

func TestCheckCharge(t *testing.T) {
	t.Parallel()
	const (
		itemTotal   = "line_item_mismatch /charge/items/0/total"
		itemsSum    = "items_sum_mismatch /charge/subtotal"
		taxSubtotal = "tax_subtotal_mismatch /charge/subtotal"
		taxRequired = "tax_subtotal_required /charge/subtotal"
		taxInside   = "tax_total_mismatch /tax/amount"
		taxOnTop    = "tax_total_mismatch /amount/value"
	)
	tests := []struct {
		name   string
		amount int64
		charge *till.Charge
		tax    *till.Tax
		want   []string
	}{
		{"neither charge nor tax is not judged", 5000, nil, nil, nil},

		{"a fractional quantity is exact", 3000, charge(3000, item("1.5", 2000, 3000)), nil, nil},
		{"a tenth and two tenths make three tenths", 3,
			charge(3, item("0.1", 10, 1), item("0.2", 10, 2)), nil, nil},
		{"a product that needs rounding is a mismatch", 1,
			charge(1, item("0.3", 3, 1)), nil, []string{itemTotal}},
		{"an item total off by one", 3001, charge(3001, item("1.5", 2000, 3001)), nil, []string{itemTotal}},
		{"a quantity with an exponent in a stored row", 1000,
			charge(1000, item("1e3", 1, 1000)), nil, []string{itemTotal}},
		{"a memory bomb of a quantity", 1000,
			charge(1000, item("1E1000000000", 1, 1000)), nil, []string{itemTotal}},
		{"an empty quantity in a stored row", 0, charge(0, item("", 0, 0)), nil, []string{itemTotal}},
		{"a quantity of zero", 0, charge(0, item("0", 5, 0)), nil, []string{itemTotal}},
		{"the bad item is named by its index", 3000,
			charge(3000, item("1", 1000, 1000), item("1", 999, 1000), item("1", 1000, 1000)), nil,
			[]string{"line_item_mismatch /charge/items/1/total"}},

		{"items that sum to the subtotal", 700,
			charge(700, item("2", 100, 200), item("1", 500, 500)), nil, nil},
		{"items that do not sum to the subtotal", 700,
			charge(700, item("2", 100, 200), item("1", 499, 499)), nil,
			[]string{itemsSum}},
		{"without subtotal only the items are judged", 5, charge(-1, item("2", 100, 200)), nil, nil},
		{"without subtotal the items are judged", 5,
			charge(-1, item("2", 100, 201)), nil, []string{itemTotal}},
		{"without tax the amount may differ", 1200, charge(1000, item("1", 1000, 1000)), nil, nil},
		{"a sum that overflows does not wrap to the subtotal", 0,
			charge(0, item("1", math.MaxInt64, math.MaxInt64), item("1", math.MaxInt64, math.MaxInt64), item("1", 2, 2)),
			nil, []string{itemsSum}},
		{"negative totals in stored rows do not cancel out", 0,
			charge(0, item("1", 5, 5), item("1", -5, -5)), nil,
			[]string{"line_item_mismatch /charge/items/1/total", itemsSum}},

		{"inclusive tax without charge", 1180, nil, inclusive(180), nil},
		{"inclusive tax with a charge without subtotal", 1180,
			charge(-1, item("1", 900, 900)), inclusive(180), nil},
		{"inclusive tax and a subtotal equal to the amount", 1180,
			charge(1180, item("1", 1180, 1180)), inclusive(180), nil},
		{"inclusive tax and another subtotal", 1180,
			charge(1000, item("1", 1000, 1000)), inclusive(180), []string{taxSubtotal}},
		{"inclusive tax that is the whole amount", 180, nil, inclusive(180), nil},
		{"inclusive tax of zero", 180, nil, inclusive(0), nil},
		{"inclusive tax above the amount", 179, nil, inclusive(180), []string{taxInside}},
		{"inclusive tax below zero in a stored row", 179, nil, inclusive(-1), []string{taxInside}},

		{"exclusive tax on top of the subtotal", 1180,
			charge(1000, item("1", 1000, 1000)), exclusive(180), nil},
		{"exclusive tax of zero", 1000, charge(1000, item("1", 1000, 1000)), exclusive(0), nil},
		{"exclusive tax without charge", 1180, nil, exclusive(180), []string{taxRequired}},
		{"exclusive tax without subtotal", 1180,
			charge(-1, item("1", 1000, 1000)), exclusive(180), []string{taxRequired}},
		{"exclusive tax that does not add up", 1181,
			charge(1000, item("1", 1000, 1000)), exclusive(180), []string{taxOnTop}},
		{"exclusive tax that the amount leaves out", 1000,
			charge(1000, item("1", 1000, 1000)), exclusive(180), []string{taxOnTop}},
		{"exclusive tax whose sum overflows", -2,
			charge(math.MaxInt64, item("1", math.MaxInt64, math.MaxInt64)), exclusive(math.MaxInt64), []string{taxOnTop}},

		{"every broken rule is told at once, inclusive", 100,
			charge(400, item("2", 100, 300)), inclusive(200),
			[]string{itemTotal, itemsSum, taxSubtotal, taxInside}},
		{"every broken rule is told at once, exclusive", 100,
			charge(400, item("2", 100, 300)), exclusive(200),
			[]string{itemTotal, itemsSum, taxOnTop}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, e := range till.CheckCharge(tt.amount, tt.charge, tt.tax) {
				got = append(got, string(e.Code)+" "+e.Pointer)
				if strings.ContainsAny(e.Detail, "0123456789") || !strings.HasSuffix(e.Detail, ".") {
					t.Errorf("detail %q is not a sentence without values", e.Detail)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("broken rules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAGoodChargeDoesNotAllocate(t *testing.T) {
	c := charge(3000, item("1.5", 2000, 3000))
	tax := exclusive(540)
	allocs := testing.AllocsPerRun(100, func() {
		if till.CheckCharge(3540, c, tax) != nil {
			t.Error("a good charge is refused")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func FuzzLineItems(f *testing.F) {
	for _, q := range append([]string{"1.5", "0.1", "0.2", "5.0", "999999999999.999999"}, hostileNumbers...) {
		f.Add(q, int64(2000), int64(3000), "1", int64(7), int64(7), int64(3007))
	}
	f.Add("0.1", int64(10), int64(1), "0.2", int64(10), int64(2), int64(3))
	const most = int64(math.MaxInt64)
	f.Add("1", most, most, "1", most, most, int64(-2))
	f.Fuzz(func(t *testing.T, q1 string, p1, t1 int64, q2 string, p2, t2, subtotal int64) {
		p1, t1, p2, t2, subtotal = amountOf(p1), amountOf(t1), amountOf(p2), amountOf(t2), amountOf(subtotal)
		c := charge(subtotal, item(q1, p1, t1), item(q2, p2, t2))
		broken := till.CheckCharge(1, c, nil)
		has := func(code till.Code, pointer string) bool {
			return slices.ContainsFunc(broken, func(e till.FieldError) bool {
				return e.Code == code && e.Pointer == pointer
			})
		}

		_, parses1 := till.ParseQuantity(q1)
		_, parses2 := till.ParseQuantity(q2)
		want := []bool{
			!parses1 || !ratGives(t, q1, p1, t1),
			!parses2 || !ratGives(t, q2, p2, t2),
			new(big.Int).Add(big.NewInt(t1), big.NewInt(t2)).Cmp(big.NewInt(subtotal)) != 0,
		}
		got := []bool{
			has(till.FieldLineItemMismatch, "/charge/items/0/total"),
			has(till.FieldLineItemMismatch, "/charge/items/1/total"),
			has(till.FieldItemsSumMismatch, "/charge/subtotal"),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("broken rules of %+v (-want +got):\n%s", c, diff)
		}
		n := 0
		for _, b := range want {
			if b {
				n++
			}
		}
		if len(broken) != n {
			t.Fatalf("%d rules are told, %d are broken: %v", len(broken), n, broken)
		}
	})
}
