package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"till"
	"till/store/storetest"
)

const guideExamples = "../../docs/guide/examples/webhooks"

// guideReceiver is how an example of docs/guide/webhook-receivers.md is run. Its text is
// the guide's: webhook's TestTheGuideShowsTheExamples holds them together.
type guideReceiver struct {
	program string // also its name
	serve   func(t *testing.T, program, port string) *exec.Cmd
	sweep   string // the file to run for one sweep; "" where it sweeps by itself
}

var guideReceivers = []guideReceiver{
	{"go", func(t *testing.T, program, _ string) *exec.Cmd {
		binary := filepath.Join(t.TempDir(), "receiver")
		build := exec.CommandContext(t.Context(), program, "build", "-o", binary, ".")
		build.Dir = filepath.Join(guideExamples, "go")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return exec.Command(binary)
	}, ""},
	{"node", func(_ *testing.T, program, _ string) *exec.Cmd {
		return exec.Command(program, filepath.Join(guideExamples, "node/receiver.mjs"))
	}, ""},
	{"python3", func(_ *testing.T, program, _ string) *exec.Cmd {
		return exec.Command(program, filepath.Join(guideExamples, "python/receiver.py"))
	}, ""},
	{"php", func(_ *testing.T, program, port string) *exec.Cmd {
		return exec.Command(program, "-S", "127.0.0.1:"+port, filepath.Join(guideExamples, "php/receiver.php"))
	}, filepath.Join(guideExamples, "php/receiver.php")},
}

// The stories that cost money: late money, money that is taken back, and a
// second try of an order whose first try comes through late. Each example hears
// of them by webhooks alone, each of which comes twice; by its sweep alone,
// while every webhook is lost; and by half of each, with a crash between. Each
// time it ships an order once if its money stands, and not otherwise.
func TestTheReceiversOfTheGuideShipWhatIsPaid(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it starts a server for each language")
	}
	t.Parallel()
	for _, r := range guideReceivers {
		t.Run(r.program, func(t *testing.T) {
			t.Parallel()
			program := storetest.Program(t, r.program)
			dir := t.TempDir()
			k := &killing{t: t, dir: dir, database: filepath.Join(dir, "till.db"), book: filepath.Join(dir, "sandbox.db"), window: 3 * time.Second, answered: map[string]string{}}
			s := k.start()
			shops := []*guideShop{
				{name: "webhooks twice", copies: func(int) int { return 2 }, pause: "3600"},
				{name: "webhooks lost", copies: func(int) int { return 0 }, pause: "1"},
				{name: "webhooks lost by half, and a crash", copies: func(n int) int { return n % 2 }, pause: "1", crash: true},
			}
			for _, shop := range shops {
				shop.open(t, k, r, program)
			}
			k.beginStories()
			for _, shop := range shops {
				if shop.crash {
					shop.await("it has shipped something, and written so", func() bool {
						shipped := map[string]string{}
						json.Unmarshal(shop.book().Orders, &shipped)
						return len(shipped) > 0
					})
					shop.kill()
					shop.before, shop.written = shop.printed(), shop.book().Steps
					shop.start()
				}
			}
			money := k.endStories()
			for _, shop := range shops {
				shop.check(money)
			}
			k.end(s, syscall.SIGTERM)
			k.verify()
		})
	}
}

// stories are the payments of each order, by the last digits of their phones,
// and what a shop has to do about it.
var stories = map[string]struct {
	phones   string
	stands   bool // money does, in the end
	takes    bool // money that came is taken back
	giveBack int  // payments that are one too many
}{
	"PAID":     {phones: "4567", stands: true},
	"DECLINED": {phones: "0002"},
	"LATE":     {phones: "0013", stands: true},
	"REVERSED": {phones: "0021", takes: true},
	"TWICE":    {phones: "4567 0013", stands: true, giveBack: 1},
}

// told are the events that webhooks tell of them: the ends of six payments, two
// late successes and a reversal.
const told = 9

// guideStep is how far the money of a payment went, by the service's word.
type guideStep struct {
	order string
	step  int // 1 not paid, 2 paid, 3 taken back
}

// beginStories makes the payments of all stories.
func (k *killing) beginStories() {
	k.t.Helper()
	for order, story := range stories {
		for _, phone := range strings.Fields(story.phones) {
			k.call(http.MethodPost, "/payments", fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},
				"customer":{"phone":"24206123%s"},"reference":%q,"idempotency_key":%q}`, phone, order, till.NewID(till.TimeOf(time.Now()))), &struct{}{})
		}
	}
}

// endStories waits for the ends of all stories, and returns what became of the
// money of each payment by what GET /payments says.
func (k *killing) endStories() map[string]guideStep {
	k.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		var page struct {
			Items []struct {
				ID, Reference, Status string
				LateSuccessAt         *string `json:"late_success_at"`
				ReversedAt            *string `json:"reversed_at"`
			}
		}
		k.call(http.MethodGet, "/payments", "", &page)
		out, stands := map[string]guideStep{}, map[string]bool{}
		late, reversed := 0, 0
		for _, p := range page.Items {
			m := guideStep{p.Reference, 0}
			switch {
			case p.ReversedAt != nil:
				m.step = 3
				reversed++
			case p.Status == "success" || p.LateSuccessAt != nil:
				m.step, stands[p.Reference] = 2, true
			case p.Status == "failed" || p.Status == "expired":
				m.step = 1
			}
			if p.LateSuccessAt != nil {
				late++
			}
			out[p.ID] = m
		}
		if late == 2 && reversed == 1 && len(out) == 6 && stands["PAID"] && stands["TWICE"] {
			for order, story := range stories {
				if stands[order] != story.stands {
					k.t.Fatalf("the money of %s stands: %t", order, stands[order])
				}
			}
			return out
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("the stories do not end: %v", out)
		}
	}
}

// guideBook is what an example has written down.
type guideBook struct {
	Steps  map[string]int
	Orders json.RawMessage // an object, or an empty list where PHP has none
}

func (g *guideShop) book() (b guideBook) {
	text, err := os.ReadFile(g.path)
	if err == nil {
		json.Unmarshal(text, &b) // an empty table of PHP is a list
	}
	return b
}

// sent waits until every event was posted so many times.
func (g *guideShop) sent(times int) {
	g.t.Helper()
	g.await(fmt.Sprintf("every event is posted %d times", times), func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		n := 0
		for _, posts := range g.posts {
			if posts >= times {
				n++
			}
		}
		return n == told
	})
}

// check waits until the shop knows what became of all the money, repeats the
// whole log to it, and compares what it did with the stories.
func (g *guideShop) check(money map[string]guideStep) {
	g.t.Helper()
	steps := map[string]int{}
	for id, m := range money {
		steps[id] = m.step
	}
	g.await("it knows of all money", func() bool { return maps.Equal(g.book().Steps, steps) })
	g.sent(1)
	g.mu.Lock()
	g.copies = func(int) int { return 1 } // the network is whole again
	g.mu.Unlock()
	g.k.call(http.MethodPost, "/webhook-endpoints/"+g.endpoint+"/replay", `{"from_sequence":1}`, &struct{}{})
	g.sent(2)
	g.kill()

	standing := map[string]string{}
	if err := json.Unmarshal(g.book().Orders, &standing); err != nil {
		g.t.Fatalf("%s: %v in %s", g.name, err, g.book().Orders)
	}
	for order, story := range stories {
		work := g.work(order, money)
		ship, stop := work["ship"], work["stop"]
		switch {
		case story.stands && ship == 1 && stop == 0:
		case story.takes && ship == 1 && stop == 1:
		case story.takes && ship == 0 && stop == 0 && g.crash: // what it heard first was that the money is gone
		case !story.stands && !story.takes && ship == 0 && stop == 0:
		default:
			g.t.Errorf("%s: %s was shipped %d times and stopped %d times", g.name, order, ship, stop)
		}
		if work["give back"] != story.giveBack {
			g.t.Errorf("%s: of %s %d payments are to be given back, want %d", g.name, order, work["give back"], story.giveBack)
		}
		if by, ships := standing[order]; ships != story.stands || ships && money[by].step != 2 {
			g.t.Errorf("%s: %s is shipped: %t, for the payment %q", g.name, order, ships, by)
		}
	}
	if t := g.t; t.Failed() {
		t.Log(g.printed())
	}
}

var workLine = regexp.MustCompile(`(ship|stop|give back|not paid): ([^,\s]+)`)

// work counts what the example did about an order. What it had begun and not written down when
// it was killed it may do once more: its file stands for a database, where that is one commit.
func (g *guideShop) work(order string, money map[string]guideStep) map[string]int {
	count := func(printed string) map[string]int {
		out := map[string]int{}
		for _, line := range workLine.FindAllStringSubmatch(printed, -1) {
			if line[2] == order || money[line[2]].order == order {
				out[line[1]]++
			}
		}
		return out
	}
	out, begun := count(g.printed()), count(g.before)
	paid, takenBack := 0, false // by what was written
	for id, step := range g.written {
		if money[id].order == order && step >= 2 {
			paid, takenBack = paid+1, takenBack || step == 3
		}
	}
	for kind, ended := range map[string]bool{"ship": paid > 0, "stop": takenBack, "give back": paid > 1} {
		if !ended && begun[kind] > 0 && out[kind] > 1 {
			out[kind]--
		}
	}
	return out
}
