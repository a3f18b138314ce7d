package conform

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// size is a number of the environment, or a small one.
func size(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// TestWebhooksBetweenKills kills the service and the shop while payments are made and
// webhooks are on their way. The shop neither reads the log nor sweeps, so webhooks alone
// bring the news, and every change is acted on exactly once. While the shop is away, a newer
// event supersedes an older one of its payment, which then does not come.
func TestWebhooksBetweenKills(t *testing.T) {
	t.Parallel()
	orders, kills := size("TILL_WEBHOOK_PAYMENTS", 120), size("TILL_WEBHOOK_KILLS", 2)
	ctx, folder := t.Context(), t.TempDir()
	on, err := startService(programs.till, filepath.Join(folder, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = on.stop() }()
	p, err := newPlay(Scenario{Name: "kills"}, on, programs.sql, "", folder)
	if p != nil {
		defer p.close()
	}
	if err == nil {
		err = p.step(ctx, &Step{Do: "endpoint"})
	}
	if err != nil {
		t.Fatal(err)
	}
	for k := 0; k <= kills; k++ {
		from, to := orders*k/(kills+1), orders*(k+1)/(kills+1)
		phone := []string{"242061234567", "242061230021"}[k%2] // approves; and the money is taken back
		if k < kills {
			err = p.buyThroughKills(ctx, on, from, to, phone)
		}
		if err == nil {
			err = p.buyMissing(ctx, from, to, phone)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	missing := orders
	// After an outage an endpoint is sent few events a second: see "How fast" in the guide.
	err = eventually(ctx, 4*time.Minute+time.Duration(orders)*200*time.Millisecond, func() (err error) {
		if missing, err = p.unheard(ctx, orders); err == nil && missing > 0 {
			err = fmt.Errorf("%d orders have not heard everything", missing)
		}
		return err
	})
	t.Logf("%d payments, %d kills of the service and of the shop: %d without every change exactly once", orders, kills, missing)
	if err != nil {
		t.Error(err)
	}
}

// unheard counts the orders that have not acted on what the books say. It returns an error if
// one has acted on anything else, or twice.
func (p *play) unheard(ctx context.Context, orders int) (missing int, err error) {
	all, err := p.books.list(ctx, "payments")
	if err != nil {
		return 0, err
	}
	acted, err := p.acted(ctx)
	if err != nil {
		return 0, err
	}
	if len(all) != orders {
		return orders, fmt.Errorf("%d payments of %d orders", len(all), orders)
	}
	for _, one := range all {
		news, heard := newsOf(&one), acted[one.Reference]
		switch _, isEnd := cutSuffix(news, heard); {
		case len(heard) > len(news):
			return missing, fmt.Errorf("%s has acted on %v, and the books have %v", one.Reference, heard, news)
		case len(news) == 0 || len(heard) == 0 || !isEnd: // a newer event may supersede older ones
			missing++
		}
	}
	return missing, nil
}

// newsOf is what a shop acts on in the life of a payment; nothing while it is open.
func newsOf(one *payment) (news []string) {
	switch one.Status {
	case "success":
		news = []string{"paid"}
	case "failed", "expired":
		news = []string{"failed"}
	}
	if one.LateSuccessAt != nil {
		news = append(news, "paid")
	}
	if one.ReversedAt != nil {
		news = append(news, "taken back")
	}
	return news
}

// cutSuffix returns what precedes an end of a list, if it is one.
func cutSuffix(list, end []string) (before []string, ok bool) {
	if len(end) > len(list) || !slices.Equal(list[len(list)-len(end):], end) {
		return list, false
	}
	return list[:len(list)-len(end)], true
}

// buyThroughKills lets customers buy while the service and the shop are killed, and starts
// both again.
func (p *play) buyThroughKills(ctx context.Context, on *service, from, to int, phone string) error {
	buy := map[string]any{"do": "buy", "from": from, "n": to - from}
	for name, value := range defaults {
		buy[name] = value
	}
	buy["phone"] = phone
	shop, server := p.driver.cmd.Process, on.cmd
	soon := func() time.Duration { return time.Duration(200+rand.IntN(1500)) * time.Millisecond }
	serverDies := time.AfterFunc(soon(), func() { _ = server.Process.Kill() })
	shopDies := time.AfterFunc(soon(), func() { _ = shop.Kill() })
	_, err := p.driver.do(ctx, buy)
	if err != nil && !errors.Is(err, errDied) {
		return err
	}
	if err := pause(ctx, 2*time.Second); err != nil { // webhooks go on, and both kills have come
		return err
	}
	serverDies.Stop()
	shopDies.Stop()
	p.driver.kill()
	_ = server.Process.Kill()
	_ = server.Wait()
	if err := on.start(); err != nil {
		return err
	}
	return p.begin(ctx)
}

// buyMissing sends what has no payment yet, once more.
func (p *play) buyMissing(ctx context.Context, from, to int, phone string) error {
	return eventually(ctx, time.Minute, func() error {
		all, err := p.books.list(ctx, "payments")
		if err != nil {
			return err
		}
		there := map[string]bool{}
		for _, one := range all {
			if there[one.Reference] {
				return fmt.Errorf("%s has two payments", one.Reference)
			}
			there[one.Reference] = true
		}
		for i := from; i < to; i++ {
			order := fmt.Sprint("b-", i)
			if there[order] {
				continue
			}
			err = errors.New("an order has no payment")
			for _, do := range []string{"collect", "send"} {
				step := Step{Do: do, Order: order, raw: map[string]any{"do": do, "order": order, "phone": phone}}
				if stepErr := p.step(ctx, &step); stepErr != nil {
					err = stepErr
				}
			}
		}
		return err
	})
}

// TestLongLists lists many payments while a tenth of them changes and others are made: each
// comes once.
func TestLongLists(t *testing.T) {
	t.Parallel()
	n := size("TILL_LIST", 1000)
	ctx, folder := t.Context(), t.TempDir()
	on, err := startService(programs.till, filepath.Join(folder, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = on.stop() }()
	p, err := newPlay(Scenario{Name: "lists", Options: map[string]int64{"deadline": 600_000, "try_timeout": 60_000}, Expect: Expect{ListedAll: true}}, on, programs.sql, "", folder)
	if p != nil {
		defer p.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	steps := []Step{
		{Do: "fill", stepOfRunner: stepOfRunner{N: n * 9 / 10}, raw: map[string]any{"phone": "242061230005"}}, // refused on the spot
		{Do: "fill", stepOfRunner: stepOfRunner{N: n / 10}, raw: map[string]any{"phone": "242061230000"}},     // expire while they are listed
		{Do: "churn", stepOfRunner: stepOfRunner{Ms: 5}},
		{Do: "list", raw: map[string]any{"do": "list", "kind": "asc"}, Want: map[string]any{"twice": 0.0}},
	}
	for _, s := range steps {
		if err := p.step(ctx, &s); err != nil {
			t.Fatalf("%s: %v", s.Do, err)
		}
	}
	p.churn()
	p.churn = nil
	books, err := p.books.list(ctx, "payments")
	if err != nil {
		t.Fatal(err)
	}
	hidden := 0
	for _, one := range books {
		if strings.HasPrefix(one.Reference, "fill-") && !p.listed[one.ID] {
			hidden++
		}
	}
	t.Logf("%d payments, %d listed, %d hidden; the shop took %s at most", len(books), len(p.listed), hidden, peakMemory(p.driver.cmd.Process.Pid))
	if hidden > 0 || len(p.listed) < n {
		t.Errorf("%d are hidden, %d listed", hidden, len(p.listed))
	}
}

// peakMemory is what Linux says a process had resident at most.
func peakMemory(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "an unknown amount"
}
