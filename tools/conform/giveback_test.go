package conform

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"till/internal/dev/faulty"
)

// TestShopGivesBack is the promise of refunds: a shop that is killed and loses a fifth of all
// answers gives half of its orders back, all of it or a part. Each customer's book nets to
// zero or to the rest, and each refund is booked once.
func TestShopGivesBack(t *testing.T) {
	t.Parallel()
	orders, kills := size("TILL_REFUND_ORDERS", 100), size("TILL_REFUND_KILLS", 2)
	began := time.Now()
	p := returns(t, orders, kills)
	var wrong []string
	_, err := goOn(t.Context(), orders, orders, func() (_ int, err error) {
		wrong, err = p.unbalanced(t.Context(), orders)
		return len(wrong), err
	}, func(missing int) {
		t.Logf("after %s %d books do not net", time.Since(began).Round(time.Second), missing)
	})
	if err != nil && len(wrong) > 0 {
		err = fmt.Errorf("%w: %s", err, wrong[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	doubles, countErr := p.refundedTwice(t.Context())
	posts := posted(p.proxy.Seen(), "/refunds")
	lost := 0
	for _, post := range posts {
		if post.Fault != "" {
			lost++
		}
	}
	t.Logf("%d orders, half of them given back, %d kills: %d double, %d books that do not net; of %d posts of refunds %d had no answer", orders, 2*kills, doubles, len(wrong), len(posts), lost)
	if countErr != nil || doubles != 0 {
		t.Errorf("%d payments were given back twice: %v", doubles, countErr)
	}
	if lost < orders/50 {
		t.Errorf("of %d posts only %d had no answer", len(posts), lost)
	}
}

// returns lets customers buy, and gives half of them their money back, while answers are lost
// and the shop is killed.
func returns(t *testing.T, orders, kills int) *play {
	t.Helper()
	ctx := t.Context()
	s := Scenario{Name: "returns", Payouts: true, Faults: []faulty.Rule{{Share: 0.2, Do: faulty.LoseAnswer}},
		Options: map[string]int64{"open_after": 3000}}
	p, err := newPlay(s, shopService(t), programs.sql, "", t.TempDir())
	if p != nil {
		t.Cleanup(p.close)
	}
	for _, step := range []Step{{Do: "endpoint"}, {Do: "run", raw: map[string]any{"do": "run"}}} {
		if err == nil {
			err = p.step(ctx, &step)
		}
	}
	command := map[string]any{}
	for name, value := range defaults {
		command[name] = value
	}
	if err == nil {
		err = p.throughKills(ctx, command, "buy", orders, kills)
	}
	if err == nil {
		_, err = goOn(ctx, orders, orders, func() (int, error) { return p.unpaid(ctx, orders) }, func(int) {})
	}
	command["value"] = "2000"
	if err == nil {
		err = p.throughKills(ctx, command, "give_back", orders, kills)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// unpaid counts the orders that the shop has not shipped.
func (p *play) unpaid(ctx context.Context, orders int) (missing int, err error) {
	acted, err := p.acted(ctx)
	for i := range orders {
		if !slices.Equal(acted[fmt.Sprint("b-", i)], []string{"paid"}) {
			missing++
		}
	}
	return missing, err
}

// backOf is what the driver gives back of an order, and what is left of it then.
func backOf(order int) (back, left int) {
	switch order % 4 {
	case 0:
		return 5000, 0
	case 2:
		return 2000, 3000
	}
	return 0, 5000
}

// unbalanced names the orders whose customer's book, at the service or in the shop, is not
// what it should be, and what else is wrong.
func (p *play) unbalanced(ctx context.Context, orders int) (wrong []string, err error) {
	payments, err := p.books.list(ctx, "payments")
	if err != nil {
		return nil, err
	}
	acted, err := p.acted(ctx)
	if err != nil {
		return nil, err
	}
	balances, err := p.books.balances(ctx)
	if err != nil {
		return nil, err
	}
	of := map[string]payment{}
	for _, one := range payments {
		of[one.Reference] = one
	}
	if len(payments) != orders || len(of) != orders {
		wrong = append(wrong, fmt.Sprintf("%d payments of %d orders", len(payments), len(of)))
	}
	sum := 0
	for i := range orders {
		back, left := backOf(i)
		order, booked := fmt.Sprint("b-", i), []string{"paid"}
		if back > 0 {
			booked = append(booked, fmt.Sprintf("refunded %d left %d", back, left))
		}
		sum += left
		if one := of[order]; one.Refunds.Refunded != strconv.Itoa(back) || one.Refunds.Refunding != "0" || !slices.Equal(acted[order], booked) {
			wrong = append(wrong, fmt.Sprintf("%s: of it went back %s, %s are on their way, the shop has %v", order, one.Refunds.Refunded, one.Refunds.Refunding, acted[order]))
		}
	}
	if balances["XAF"] != strconv.Itoa(sum) {
		wrong = append(wrong, fmt.Sprintf("the wallet has %s, want %d", balances["XAF"], sum))
	}
	return wrong, nil
}

// refundedTwice counts the payments that have more than one refund.
func (p *play) refundedTwice(ctx context.Context) (doubles int, err error) {
	all, err := p.books.list(ctx, "refunds")
	if err != nil {
		return 0, err
	}
	refunds := map[string]int{}
	for _, one := range all {
		refunds[one.PaymentID]++
	}
	for _, n := range refunds {
		if n > 1 {
			doubles++
		}
	}
	return doubles, nil
}
