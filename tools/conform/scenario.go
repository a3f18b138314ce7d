package conform

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"till/internal/dev/faulty"
)

// Scenario is a story with its end.
type Scenario struct {
	Name    string           `json:"name"`
	Duty    string           `json:"duty"`
	Options map[string]int64 `json:"options"` // of the driver, in milliseconds
	Payouts bool             `json:"payouts"` // the key may pay out, refund and manage keys
	Own     bool             `json:"own"`     // it needs a service of its own, because it stops it
	Faults  []faulty.Rule    `json:"faults"`
	Steps   []Step           `json:"steps"`
	Expect  Expect           `json:"expect"`

	Group string `json:"-"` // the name of its file
}

// Step is a command for the driver, or something that the runner does.
type Step struct {
	Do    string
	raw   map[string]any // the command as written, for the driver
	Order string
	Dies  bool           // the driver ends during this step, and is started again
	Want  map[string]any // members of the result
	stepOfRunner
}

// stepOfRunner are the members of steps that the runner does itself.
type stepOfRunner struct {
	Faults  []faulty.Rule   `json:"faults"`
	Ms      int             `json:"ms"`
	Status  string          `json:"status"`
	Kind    string          `json:"kind"`   // of an event; or refund or checkout, where the newest one of the order is meant
	Action  string          `json:"action"` // of a prompt
	Times   int             `json:"times"`
	AtOnce  bool            `json:"at_once"`
	Age     int             `json:"age"`    // seconds
	Secret  string          `json:"secret"` // of a delivery: "" for ours, "wrong", "old"
	Change  string          `json:"change"` // of a delivery
	Answer  int             `json:"answer"` // what the receiver says
	N       int             `json:"n"`
	Overlap int             `json:"overlap"`
	Events  []string        `json:"events"`
	Steps   []Step          `json:"steps"`
	Body    json.RawMessage `json:"body"`
	Value   string          `json:"value"`   // of a refund that somebody else makes
	Phone   string          `json:"phone"`   // of a customer on a page; "" is the one that the shop named
	InTime  bool            `json:"in_time"` // of a customer who pays before late money comes
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Step) UnmarshalJSON(b []byte) error {
	var plain struct {
		Do, Order string
		Dies      bool
		Want      map[string]any
	}
	if err := json.Unmarshal(b, &plain); err != nil {
		return err
	}
	s.Do, s.Order, s.Dies, s.Want = plain.Do, plain.Order, plain.Dies, plain.Want
	if err := json.Unmarshal(b, &s.raw); err != nil {
		return err
	}
	if slices.Contains(runnerSteps, s.Do) {
		return json.Unmarshal(b, &s.stepOfRunner)
	}
	for _, name := range []string{"dies", "want"} {
		delete(s.raw, name)
	}
	return nil
}

// Expect is what the books and the shop must say at the end. What is not named
// is not looked at.
type Expect struct {
	Payments *int `json:"payments"` // of the client, in the books
	Payouts  *int `json:"payouts"`
	Refunds  *int `json:"refunds"`
	Pages    *int `json:"checkouts"`
	Keys     *int `json:"keys"` // different ones in posts of payments
	Posts    *int `json:"posts"`
	MinPosts *int `json:"min_posts"` // where something is slow on purpose, a busy machine makes one more of them
	MaxPosts *int `json:"max_posts"`
	MaxReads *int `json:"max_reads"` // of single payments
	Cancels  *int `json:"cancels"`   // posts of cancels

	RefundPosts *int `json:"refund_posts"`
	RefundKeys  *int `json:"refund_keys"` // different ones in posts of refunds

	CheckoutPosts *int `json:"checkout_posts"`
	CheckoutKeys  *int `json:"checkout_keys"`

	NewKeys *int                `json:"new_keys"`   // posts of API keys
	Gap     *int                `json:"gap_ms"`     // at least, between the first two posts
	MaxGap  *int                `json:"max_gap_ms"` // at most
	Status  map[string]string   `json:"status"`     // of the newest payment of an order
	Amounts map[string]string   `json:"amounts"`
	Acted   map[string][]string `json:"acted"`
	Balance map[string]string   `json:"balance"` // of wallets, by currency

	Quantities map[string]string `json:"quantities"` // of an order's first item
	ListedAll  bool              `json:"listed_all"` // the last list held every payment of fill
}

// patientTry is the time of a try in scenarios that count posts, in milliseconds. A busy
// machine takes longer than the driver's own three seconds, and a try that ends for that
// reason is one post more.
const patientTry = 15_000

// options are those of the scenario. Where nothing is slow on purpose, nobody is killed and
// posts are counted, a try has more time.
func (s *Scenario) options() map[string]int64 {
	options := maps.Clone(s.Options)
	if options == nil {
		options = map[string]int64{}
	}
	slow := func(r faulty.Rule) bool {
		return slices.Contains([]faulty.Fault{faulty.Hang, faulty.HangAnswer, faulty.Slow, faulty.SlowAnswer}, r.Do)
	}
	disturbed := slices.ContainsFunc(s.Faults, slow) || slices.ContainsFunc(s.Steps, func(step Step) bool {
		return step.Dies || slices.Contains([]string{"kill", "crash_at", "stop_service"}, step.Do) || slices.ContainsFunc(step.Faults, slow)
	})
	if _, named := options["try_timeout"]; !named && (s.Expect.Posts != nil || s.Expect.RefundPosts != nil || s.Expect.CheckoutPosts != nil) && !disturbed {
		options["try_timeout"] = patientTry
	}
	return options
}

// Mutant is a mistake and the scenarios that notice it.
type Mutant struct {
	Name     string   `json:"name"`
	CaughtBy []string `json:"caught_by"`
}

// load reads the scenarios, each group a file, and the mutants.
func load(folder string) ([]Scenario, []Mutant, error) {
	files, err := filepath.Glob(filepath.Join(folder, "scenarios", "*.json"))
	if err != nil || len(files) == 0 {
		return nil, nil, fmt.Errorf("no scenarios in %s: %w", folder, err)
	}
	var all []Scenario
	names := map[string]bool{}
	for _, file := range files {
		var group []Scenario
		if err := readJSON(file, &group); err != nil {
			return nil, nil, err
		}
		for _, s := range group {
			if s.Name == "" || s.Duty == "" || len(s.Steps) == 0 || names[s.Name] {
				return nil, nil, fmt.Errorf("%s: %q has no name, no duty or no steps, or stands there twice", file, s.Name)
			}
			names[s.Name] = true
			s.Group = filepath.Base(file[:len(file)-len(".json")])
			all = append(all, s)
		}
	}
	var mutants []Mutant
	return all, mutants, readJSON(filepath.Join(folder, "mutants.json"), &mutants)
}

func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return nil
}
