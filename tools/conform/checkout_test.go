package conform

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"till/internal/dev/faulty"
)

// TestShopWithCheckouts is the promise of pages: a shop that is killed and loses a fifth of all
// answers opens one page for each order, whose customer pays it once, and ships each order once.
func TestShopWithCheckouts(t *testing.T) {
	t.Parallel()
	orders, kills := size("TILL_CHECKOUTS", 100), size("TILL_CHECKOUT_KILLS", 2)
	began := time.Now()
	p := opened(t, orders, kills)
	t.Logf("%d pages opened after %s", orders, time.Since(began).Round(time.Second))
	ctx := t.Context()
	checkouts, err := p.books.list(ctx, "checkouts")
	if err != nil {
		t.Fatal(err)
	}
	paid := make(chan error, 1)
	go func() { paid <- p.payAll(ctx, checkouts) }()
	for range kills { // while the customers pay
		if err := pause(ctx, time.Duration(1000+rand.IntN(2000))*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		p.driver.kill()
		if err := p.begin(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-paid; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pages paid after %s", len(checkouts), time.Since(began).Round(time.Second))
	var wrong []string
	_, err = goOn(ctx, orders, orders, func() (_ int, err error) {
		wrong, err = p.misordered(ctx, orders)
		return len(wrong), err
	}, func(missing int) {
		t.Logf("after %s %d orders are not paid and shipped once", time.Since(began).Round(time.Second), missing)
	})
	if err != nil && len(wrong) > 0 {
		err = fmt.Errorf("%w: %s", err, wrong[0])
	}
	posts, lost := posted(p.proxy.Seen(), "/checkouts"), 0
	for _, post := range posts {
		if post.Fault != "" {
			lost++
		}
	}
	t.Logf("%d orders on pages, %d kills: %d not paid and shipped once; of %d posts of checkouts %d had no answer; %s",
		orders, 2*kills, len(wrong), len(posts), lost, time.Since(began).Round(time.Second))
	if err != nil {
		t.Error(err)
	}
	if lost < orders/50 {
		t.Errorf("of %d posts only %d had no answer", len(posts), lost)
	}
}

// opened opens a page for each of many orders while answers are lost and the shop is killed.
func opened(t *testing.T, orders, kills int) *play {
	t.Helper()
	ctx := t.Context()
	s := Scenario{Name: "pages", Faults: []faulty.Rule{{Share: 0.2, Do: faulty.LoseAnswer}}, Options: map[string]int64{"open_after": 3000, "from_end": 1}}
	p, err := newPlay(s, shopService(t), programs.sql, "", t.TempDir())
	if p != nil {
		t.Cleanup(p.close)
	}
	for _, step := range []Step{{Do: "endpoint"}, {Do: "run", raw: map[string]any{"do": "run"}}} {
		if err == nil {
			err = p.step(ctx, &step)
		}
	}
	command := map[string]any{"value": defaults["value"], "currency": defaults["currency"], "phone": defaults["phone"]}
	if err == nil {
		err = p.throughKills(ctx, command, "open_checkouts", orders, kills)
	}
	if err == nil { // what was written before a kill is made by run
		_, err = goOn(ctx, orders, orders, func() (int, error) {
			all, err := p.books.list(ctx, "checkouts")
			return max(0, orders-len(all)), err
		}, func(int) {})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// misordered names the orders that do not have one page, paid once, or that the shop did not ship
// once, and what else is wrong.
func (p *play) misordered(ctx context.Context, orders int) (wrong []string, err error) {
	checkouts, err := p.books.list(ctx, "checkouts")
	if err != nil {
		return nil, err
	}
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
	if len(checkouts) != orders || len(payments) != orders {
		wrong = append(wrong, fmt.Sprintf("%d checkouts and %d payments of %d orders", len(checkouts), len(payments), orders))
	}
	of := map[string]payment{}
	for _, one := range checkouts {
		of[one.Reference] = one
	}
	for i := range orders {
		order := fmt.Sprint("b-", i)
		if one := of[order]; one.State != "paid" || one.Overpaid || len(one.Asks) != 1 || !slices.Equal(acted[order], []string{"paid"}) {
			wrong = append(wrong, fmt.Sprintf("%s is %s with %d asks, the shop has %v", order, one.State, len(one.Asks), acted[order]))
		}
	}
	if want := strconv.Itoa(orders * 5000); balances["XAF"] != want {
		wrong = append(wrong, fmt.Sprintf("the wallet has %s, want %s", balances["XAF"], want))
	}
	return wrong, nil
}
