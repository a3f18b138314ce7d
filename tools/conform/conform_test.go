package conform

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	sdk "github.com/till-project/till/sdk/go/driver"
	"till/internal/dev/faulty"
)

// programs are what the suite runs, built once: the service, and the drivers of
// the SDK that is held to it.
var programs struct {
	folder, till string
	drivers
}

// shared is the service that most scenarios share, each with a client of its own.
var shared *service

func TestMain(m *testing.M) {
	log.SetFlags(0)
	code, err := prepare(m.Run)
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(code)
}

func prepare(run func() int) (code int, err error) {
	if programs.folder, err = os.MkdirTemp("", "conform-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(programs.folder)
	if programs.till = os.Getenv("TILL_BINARY"); programs.till == "" {
		if programs.till, err = goBuild(programs.folder, "till", "../..", "./cmd/till"); err != nil {
			return 1, err
		}
	}
	prepareSDK, ok := sdks[sdkName()]
	if !ok {
		return 1, fmt.Errorf("TILL_SDK: there is no SDK for %s", sdkName())
	}
	if programs.drivers, err = prepareSDK(programs.folder); err != nil {
		return 1, err
	}
	if shared, err = startService(programs.till, filepath.Join(programs.folder, "data")); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.stop()) }()
	return run(), nil
}

// atOnce is how many scenarios are played at the same time: most of their time
// is waiting.
const atOnce = 12

// mostPlays is how often a scenario is played whose customer comes too late.
const mostPlays = 5

// one plays a scenario.
func one(ctx context.Context, s Scenario, driver []string, mutant, folder string) error {
	for n := 1; ; n++ {
		own := filepath.Join(folder, strconv.Itoa(n))
		err := os.Mkdir(own, 0o700)
		if err == nil {
			err = once(ctx, s, driver, mutant, own)
		}
		if !errors.Is(err, errTooLate) || n == mostPlays {
			return err
		}
	}
}

func once(ctx context.Context, s Scenario, driver []string, mutant, folder string) error {
	on := shared
	if s.Own {
		var err error
		if on, err = startService(programs.till, filepath.Join(folder, "data")); err != nil {
			return err
		}
		defer func() { _ = on.stop() }()
	}
	p, err := newPlay(s, on, driver, mutant, folder)
	if p != nil && p.front != nil {
		defer p.close()
	}
	if err != nil {
		return errors.Join(errNotBegun, err)
	}
	return p.run(ctx)
}

// errNotBegun is a scenario whose driver did not start, which says nothing about
// what it would have done.
var errNotBegun = errors.New("the driver did not begin")

func scenarios(t *testing.T) ([]Scenario, []Mutant) {
	t.Helper()
	all, mutants, err := load("../../sdk/conformance")
	if err != nil {
		t.Fatal(err)
	}
	return all, mutants
}

// TestScenarios plays every scenario with one of the two stores in turn, or with
// both if TILL_STORES is all. If TILL_SCENARIOS is part, it plays those that catch
// the mutants.
func TestScenarios(t *testing.T) {
	t.Parallel()
	all, mutants := scenarios(t)
	if os.Getenv("TILL_SCENARIOS") == "part" {
		all = slices.DeleteFunc(all, func(s Scenario) bool {
			return !slices.ContainsFunc(mutants, func(m Mutant) bool { return slices.Contains(m.CaughtBy, s.Name) })
		})
	}
	places := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	play := func(s Scenario, store string, driver []string) {
		places <- struct{}{}
		wait.Add(1)
		go func() {
			defer func() { <-places; wait.Done() }()
			t.Run(s.Group+"/"+s.Name+"/"+store, func(t *testing.T) {
				if err := one(t.Context(), s, driver, "", t.TempDir()); err != nil {
					t.Error(err)
				}
			})
		}()
	}
	for i, s := range all {
		all := os.Getenv("TILL_STORES") == "all"
		if all || i%2 == 0 {
			play(s, "files", programs.files)
		}
		if all || i%2 == 1 {
			play(s, "sql", programs.sql)
		}
	}
	wait.Wait()
}

// TestMutants switches on one mistake after the other. Each is noticed by a
// scenario that passes without it.
func TestMutants(t *testing.T) {
	t.Parallel()
	all, mutants := scenarios(t)
	var names []string
	var wait sync.WaitGroup
	for _, m := range mutants {
		names = append(names, m.Name)
		wait.Add(1)
		go func() {
			defer wait.Done()
			t.Run(m.Name, func(t *testing.T) {
				for _, name := range m.CaughtBy {
					i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
					if i < 0 {
						t.Fatalf("there is no scenario %q", name)
					}
					err := one(t.Context(), all[i], programs.files, m.Name, t.TempDir())
					if err == nil || errors.Is(err, errNotBegun) {
						t.Errorf("%q does not notice it: %v", name, err)
					}
					t.Logf("%s: %v", name, err)
				}
			})
		}()
	}
	wait.Wait()
	if sdkName() == "go" && !slices.Equal(names, sdk.Mutants) {
		t.Errorf("the suite catches %v, the driver has %v", names, sdk.Mutants)
	}
}

// shopSize is how many orders TestShop has, and how often the shop is killed.
func shopSize() (orders, kills int) {
	orders, kills = 500, 5
	if n, err := strconv.Atoi(os.Getenv("TILL_ORDERS")); err == nil {
		orders = n
	}
	if n, err := strconv.Atoi(os.Getenv("TILL_KILLS")); err == nil {
		kills = n
	}
	return orders, kills
}

// TestShop is the promise: a shop that is killed, loses a fifth of all answers and
// hears everything by three roads asks each customer once and ships each order
// once.
func TestShop(t *testing.T) {
	t.Parallel()
	orders, kills := shopSize()
	p, err := shop(t.Context(), shopService(t), t.TempDir(), "", orders, kills)
	if p != nil {
		defer p.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	err = eventually(t.Context(), 3*time.Minute, func() error { return p.verdict(t.Context()) })
	doubles, missing, wrong, countErr := p.count(t.Context(), orders)
	t.Logf("%d orders, %d kills: %d double, %d lost, %d not shipped exactly once, %d posts", orders, kills, doubles, missing, wrong, len(posted(p.proxy.Seen(), "/payments")))
	if err = errors.Join(err, countErr); err != nil || doubles != 0 || missing != 0 || wrong != 0 {
		t.Error(err)
	}
}

// The same shop with a new key for every try asks many customers twice.
func TestShopWithANewKeyPerTry(t *testing.T) {
	t.Parallel()
	orders, kills := shopSize()
	orders, kills = orders/2, kills/2
	p, err := shop(t.Context(), shopService(t), t.TempDir(), "new_key_per_try", orders, kills)
	if p != nil {
		defer p.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	doubles, missing, _, err := p.count(t.Context(), orders)
	t.Logf("%d orders, %d kills: %d double, %d lost", orders, kills, doubles, missing)
	if err != nil || doubles < orders/20 {
		t.Errorf("%d of %d are double, and that should be many; %v", doubles, orders, err)
	}
}

// shopService starts a service whose payments do not expire while the machine is busy.
func shopService(t *testing.T) *service {
	t.Helper()
	on, err := startServiceFor("5m", programs.till, filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = on.stop() })
	return on
}

// shop lets customers buy while answers are lost and the shop is killed.
func shop(ctx context.Context, on *service, folder, mutant string, orders, kills int) (*play, error) {
	want := map[string][]string{}
	for i := range orders {
		want[fmt.Sprint("b-", i)] = []string{"paid"}
	}
	s := Scenario{Name: "shop", Faults: []faulty.Rule{{Share: 0.2, Do: faulty.LoseAnswer}}, Options: map[string]int64{"open_after": 3000, "from_end": 1},
		Expect: Expect{Payments: &orders, Acted: want, Balance: map[string]string{"XAF": strconv.Itoa(orders * 5000)}}}
	p, err := newPlay(s, on, programs.sql, mutant, folder)
	if err != nil {
		return p, err
	}
	for _, step := range []Step{{Do: "endpoint"}, {Do: "run", raw: map[string]any{"do": "run"}}} {
		if err := p.step(ctx, &step); err != nil {
			return p, err
		}
	}
	return p, p.throughKills(ctx, maps.Clone(defaults), "buy", orders, kills)
}

// throughKills does something for many orders while the shop is killed, and then what is
// missing.
func (p *play) throughKills(ctx context.Context, command map[string]any, do string, orders, kills int) error {
	each := orders / (kills + 1)
	for k := 0; k <= kills; k++ {
		n := each
		if k == kills {
			n = orders - each*kills
		}
		command["do"], command["from"], command["n"] = do, k*each, n
		if k < kills {
			process := p.driver.cmd.Process
			timer := time.AfterFunc(time.Duration(300+rand.IntN(1200))*time.Millisecond, func() { _ = process.Kill() })
			_, err := p.driver.do(ctx, command)
			timer.Stop()
			p.driver.kill()
			if err != nil && !errors.Is(err, errDied) {
				return err
			}
			if err := p.begin(ctx); err != nil {
				return err
			}
		}
		if result, err := p.driver.do(ctx, command); err != nil || result["error"] != nil && p.mutant == "" {
			return fmt.Errorf("%s: %v, %w", do, result, err)
		}
	}
	return nil
}

// count counts what went wrong: orders with two payments, orders with none, and
// orders that were not shipped exactly once.
func (p *play) count(ctx context.Context, orders int) (doubles, missing, wrong int, err error) {
	all, err := p.books.list(ctx, "payments")
	if err != nil {
		return 0, 0, 0, err
	}
	payments := map[string]int{}
	for _, one := range all {
		payments[one.Reference]++
	}
	acted, err := p.acted(ctx)
	for i := range orders {
		order := fmt.Sprint("b-", i)
		switch n := payments[order]; {
		case n == 0:
			missing++
		case n > 1:
			doubles++
		}
		if !slices.Equal(acted[order], []string{"paid"}) {
			wrong++
		}
	}
	return doubles, missing, wrong, err
}
