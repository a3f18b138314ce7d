package sim

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"till/config"
	"till/internal/db/dbfault"
	"till/store/storetest"
)

// story is one thing that happens, from its begin to its end.
type story struct {
	name    string
	options Options
	prepare func(w *World) // before effects count
	tell    func(w *World)
	settles time.Duration // 0 means a quarter of an hour
	verdict Verdict
	// runsOn means that no instance may crash, because it would not start again: its connection
	// stands for another account, and payments on the old one are open.
	runsOn bool
	spoil  func(w *World) // before the books are compared; nil: nothing is wrong with them
}

// configurations are the same in all worlds: the second has another account at MTN.
var configurations = sync.OnceValues(func() (files [2]*config.File, err error) {
	folder, err := os.MkdirTemp("", "till-sim")
	if err != nil {
		return files, err
	}
	defer os.RemoveAll(folder)
	for i := range files {
		if files[i], err = Configuration(folder, i > 0); err != nil {
			return files, err
		}
	}
	return files, nil
})

// newFolder returns a folder in memory, where there is one: each commit waits for the disk.
func newFolder(t *testing.T) string {
	t.Helper()
	parent := ""
	if _, err := os.Stat("/dev/shm"); err == nil {
		parent = "/dev/shm"
	}
	folder, err := os.MkdirTemp(parent, "till-sim")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// effect is the n-th effect at a place.
type effect struct {
	place string
	n     int // 0: none
}

// name returns the effect as the name of a test.
func (e effect) name() string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, e.place)
	return fmt.Sprintf("%s.%d", name, e.n)
}

// behind returns how many effects behind it another one fails: some number that is always the
// same.
func (e effect) behind(s *story) int {
	h := fnv.New32()
	h.Write([]byte(s.name + e.name()))
	return int(h.Sum32()%60) + 1
}

// play plays a story once with a fault at one of its effects, in virtual time, and lets the
// books judge it. It returns the places of all effects, and of those that failed.
func play(t *testing.T, s *story, k *faultKind, at effect) (seen, failed []string) {
	t.Helper()
	files, err := configurations()
	if err != nil {
		t.Fatal(err)
	}
	folder := newFolder(t)
	storetest.NewFile(t, filepath.Join(folder, "till.db"))
	receiverCertificate()
	synctest.Test(t, func(t *testing.T) {
		plan := &dbfault.Plan{}
		w := NewWorld(t, folder, files[0], plan)
		defer w.End()
		if s.options.Other {
			w.other = files[1]
		}
		w.Start(s.options)
		if s.options.Receiver {
			w.OpenShop()
		}
		if s.prepare != nil {
			s.prepare(w)
		}
		synctest.Wait()
		plan.StartAt(k.fault, at.place, at.n, k.stays)
		if k.again != dbfault.None {
			plan.Again(k.again, at.behind(s))
		}
		s.tell(w)
		settles := s.settles
		if settles == 0 {
			settles = 15 * time.Minute
		}
		w.Settle(settles)
		seen, failed = plan.Seen(), plan.Failed()
		for _, o := range w.answers.orders {
			w.repeat(o)
		}
		w.End()
		if s.spoil != nil {
			s.spoil(w)
		}
		w.Judge(s.verdict)
		w.Close()
		if t.Failed() {
			t.Logf("%s of %s, %d restarts. Again: TILL_EFFECTS=all go test ./sim -run '%s$'\nThe log is\n%s", k.name, strings.Join(failed, ", then of "), w.restarts, t.Name(), w.text)
		}
	})
	return seen, failed
}

// coverage is which places have failed, in all stories.
type coverage struct {
	mu     sync.Mutex
	seen   map[string]int
	failed map[string]int
	runs   int
}

func (c *coverage) add(seen, failed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	for _, p := range seen {
		c.seen[p]++
	}
	for _, p := range failed {
		c.failed[p]++
	}
}

// In how many stories a place fails. What reads leaves nothing behind.
const (
	storiesOfReads  = 1
	storiesOfOthers = 1
	// repeats is how often one place fails in one story, if all do: most effects are polls.
	repeats = 4
)

// faultKind is a way to fail.
type faultKind struct {
	name  string
	fault dbfault.Fault
	stays bool
	again dbfault.Fault // comes some effects later; None: nothing does
	soak  bool          // only if all are wanted
}

var faultKinds = []faultKind{
	{name: "error", fault: dbfault.Error}, {name: "crash", fault: dbfault.Crash},
	{name: "hang", fault: dbfault.Hang, soak: true}, {name: "away", fault: dbfault.Error, stays: true, soak: true},
	{name: "crash_twice", fault: dbfault.Crash, again: dbfault.Crash, soak: true}, {name: "error_and_crash", fault: dbfault.Error, again: dbfault.Crash, soak: true},
}

// choice is which effects fail, by story and kind of fault.
type choice map[string][]effect

func (c choice) of(s *story, k *faultKind) []effect { return c[s.name+" "+k.name] }

// choose chooses the effects that fail, of those that each story has: each place in a few of
// the stories that come by, or in all of them.
func choose(seen [][]string, all bool) choice {
	type visit struct {
		story int
		at    effect
		rank  uint32
	}
	out := choice{}
	for _, k := range faultKinds {
		visits := map[string][]visit{}
		for i, places := range seen {
			if stories[i].runsOn && (k.fault == dbfault.Crash || k.again == dbfault.Crash || k.fault == dbfault.Hang) {
				continue
			}
			times := map[string]int{}
			for _, place := range places {
				if times[place]++; times[place] == 1 || all && times[place] <= repeats {
					h := fnv.New32()
					h.Write([]byte(stories[i].name + k.name + place))
					visits[place] = append(visits[place], visit{i, effect{place, times[place]}, h.Sum32()})
				}
			}
		}
		for place, v := range visits {
			most := storiesOfOthers
			if strings.HasPrefix(place, "send ") || place == "begin read" {
				most = storiesOfReads
			}
			slices.SortFunc(v, func(a, b visit) int { return cmp.Compare(a.rank, b.rank) })
			if !all {
				v = v[:min(len(v), most)]
			}
			for _, x := range v {
				key := stories[x.story].name + " " + k.name
				out[key] = append(out[key], x.at)
			}
		}
	}
	for _, all := range out {
		slices.SortFunc(all, func(a, b effect) int { return cmp.Or(cmp.Compare(a.place, b.place), a.n-b.n) })
	}
	return out
}

// TestNthEffect plays each story once to count its effects, and then again with each of
// them failed: by an error, of which the answer to a commit is lost, and by a crash. At the
// end all books are held against each other. Where stories have effects in common, each
// fails in a few of them. With TILL_EFFECTS=all each fails in every story, also by a hang,
// by errors that stay until the next start, and with a crash some effects later.
//
// A failure names its story, fault and effect. To run it again:
//
//	TILL_EFFECTS=all go test ./sim -run 'TestNthEffect/create_to_success/crash/request_mtnmomo_POST__collection_v1_0_requesttopay.1$'
func TestNthEffect(t *testing.T) {
	c := &coverage{seen: map[string]int{}, failed: map[string]int{}}
	all := os.Getenv("TILL_EFFECTS") == "all"
	began := time.Now()
	seen := make([][]string, len(stories))
	for i := range stories {
		seen[i], _ = play(t, &stories[i], &faultKind{}, effect{})
		c.add(seen[i], nil)
		if t.Failed() {
			t.Fatalf("%q does not end well by itself", stories[i].name)
		}
	}
	if testing.Short() {
		t.Skip("make quick plays the stories without faults")
	}
	chosen := choose(seen, all)
	t.Cleanup(func() { c.report(t, time.Since(began)) })
	for i := range stories {
		s := &stories[i]
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			for _, k := range faultKinds {
				if k.soak && !all {
					continue
				}
				t.Run(k.name, func(t *testing.T) {
					for _, at := range chosen.of(s, &k) {
						t.Run(at.name(), func(t *testing.T) { c.add(play(t, s, &k, at)) })
					}
				})
			}
		})
	}
}

// parts returns what a place consists of: the statements, by name, of a batch; a call by its
// operator; begin, commit and answer.
func parts(place string) []string {
	words := strings.Fields(place)
	switch words[0] {
	case "send":
		return words[1:]
	case "commit":
		return append([]string{"commit"}, words[1:]...)
	case "answer":
		if strings.HasPrefix(place, "answer to commit") {
			return []string{"answer to commit"}
		}
	}
	return []string{place}
}

// report says which statements and calls have failed, and which never did.
func (c *coverage) report(t *testing.T, took time.Duration) {
	t.Helper()
	seen, failed := map[string]bool{}, map[string]bool{}
	for place := range c.seen {
		for _, p := range parts(place) {
			seen[p] = true
		}
	}
	for place := range c.failed {
		for _, p := range parts(place) {
			failed[p] = true
		}
	}
	var never []string
	for p := range seen {
		if !failed[p] {
			never = append(never, p)
		}
	}
	slices.Sort(never)
	t.Logf("%d runs in %s; of %d statements and calls %d were failed (%d %%)", c.runs, took.Round(100*time.Millisecond), len(seen), len(failed), 100*len(failed)/max(1, len(seen)))
	for _, p := range never {
		t.Logf("never failed: %s", p)
	}
}
