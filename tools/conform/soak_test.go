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
	"sync"
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

// TestWebhooksBetweenKills kills the service and the shops while payments are made and
// webhooks are on their way. No shop reads the log or sweeps, so webhooks alone bring the
// news, and every change is acted on exactly once. While a shop is away, a newer event
// supersedes an older one of its payment, which then does not come.
//
// After an outage an endpoint is sent 50 events a second ("How fast" in the guide), so one
// shop would need most of the time to wait for that. Several share the service and its kills.
func TestWebhooksBetweenKills(t *testing.T) {
	t.Parallel()
	orders, kills := size("TILL_WEBHOOK_PAYMENTS", 120), size("TILL_WEBHOOK_KILLS", 2)
	ctx, folder := t.Context(), t.TempDir()
	on, err := startServiceFor("5m", programs.till, filepath.Join(folder, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = on.stop() }()
	shops := make(shops, size("TILL_WEBHOOK_SHOPS", 2))
	for i := range shops {
		if shops[i], err = newPlay(Scenario{Name: "kills"}, on, programs.sql, "", t.TempDir()); shops[i] != nil {
			defer shops[i].close()
		}
		if err == nil {
			err = shops[i].step(ctx, &Step{Do: "endpoint"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	each := orders / len(shops)
	began := time.Now()
	for k := 0; k <= kills; k++ {
		from, to := each*k/(kills+1), each*(k+1)/(kills+1)
		phone := []string{"242061234567", "242061230021"}[k%2] // approves; and the money is taken back
		if k < kills {
			err = shops.buyThroughKills(ctx, on, from, to, phone)
		}
		if err == nil {
			err = shops.all(func(p *play) error { return p.buyMissing(ctx, from, to, phone) })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	bought := time.Since(began).Round(time.Second)
	missing, err := shops.awaitNews(ctx, each, func(missing int) {
		t.Logf("after %s %d orders have not received everything", time.Since(began).Round(time.Second), missing)
	})
	t.Logf("%d payments of %d shops, %d kills of the service and of each shop, bought in %s, all received after %s: %d without every change exactly once",
		each*len(shops), len(shops), kills, bought, time.Since(began).Round(time.Second), missing)
	if err != nil {
		t.Error(err)
	}
}

// shops are several shops at one service.
type shops []*play

// all does something for each shop at the same time.
func (s shops) all(do func(*play) error) error {
	errs := make([]error, len(s))
	var wait sync.WaitGroup
	for i, p := range s {
		wait.Go(func() { errs[i] = do(p) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// mostSilence is how long no order may receive anything. An endpoint that failed several
// times is tried again after two minutes at most, in so few kills.
const mostSilence = 4 * time.Minute

// awaitNews waits until every order has acted on everything, as long as it goes on.
func (s shops) awaitNews(ctx context.Context, each int, report func(missing int)) (int, error) {
	return goOn(ctx, each, each*len(s), func() (sum int, err error) {
		missing := make([]int, len(s))
		err = s.all(func(p *play) (err error) {
			missing[slices.Index(s, p)], err = p.unheard(ctx, each)
			return err
		})
		for _, n := range missing {
			sum += n
		}
		return sum, err
	}, report)
}

// goOn looks at many orders until none is missing, as long as there are fewer and fewer.
func goOn(ctx context.Context, each, all int, look func() (missing int, err error), report func(missing int)) (int, error) {
	interval := min(300*time.Millisecond+time.Duration(each)*2*time.Millisecond, 10*time.Second) // a look reads all payments
	least, changed := all+1, time.Now()
	for {
		missing, err := look()
		if err != nil {
			return least, err
		}
		if missing < least {
			least, changed = missing, time.Now()
			report(missing)
		}
		if missing == 0 {
			return 0, nil
		}
		if time.Since(changed) > mostSilence {
			return missing, fmt.Errorf("%d orders have received nothing for %s", missing, mostSilence)
		}
		if err := pause(ctx, interval); err != nil {
			return missing, err
		}
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

// buyThroughKills lets customers buy in each shop while the service and the shops are killed,
// and starts them again.
func (s shops) buyThroughKills(ctx context.Context, on *service, from, to int, phone string) error {
	buy := map[string]any{"do": "buy", "from": from, "n": to - from}
	for name, value := range defaults {
		buy[name] = value
	}
	buy["phone"] = phone
	server := on.cmd
	soon := func() time.Duration { return time.Duration(200+rand.IntN(1500)) * time.Millisecond }
	serverDies := time.AfterFunc(soon(), func() { _ = server.Process.Kill() })
	err := s.all(func(p *play) error {
		shop := p.driver.cmd.Process
		shopDies := time.AfterFunc(soon(), func() { _ = shop.Kill() })
		defer shopDies.Stop()
		if _, err := p.driver.do(ctx, buy); err != nil && !errors.Is(err, errDied) {
			return err
		}
		return pause(ctx, 2*time.Second) // webhooks go on, and both kills have come
	})
	if err != nil {
		return err
	}
	serverDies.Stop()
	for _, p := range s {
		p.driver.kill()
	}
	_ = server.Process.Kill()
	_ = server.Wait()
	if err := on.start(); err != nil {
		return err
	}
	return s.all(func(p *play) error { return p.begin(ctx) })
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
