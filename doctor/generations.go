package doctor

import (
	"context"
	"strconv"
	"strings"
	"time"

	"till"
	"till/store"
	"till/upkeep"
)

// maxRotation is how long a rotation may take before the doctor warns: late reads of open
// payments are over by then.
const maxRotation = 14 * 24 * time.Hour

// examineGenerations reports which generations of the secret are in use, and what a rotation
// has left.
func (d *doctor) examineGenerations(ctx context.Context, s *store.Store) error {
	g, err := upkeep.ReadGenerations(ctx, s)
	if err != nil {
		return err
	}
	used, replaced, lost := g.Used(), []string{}, int64(0)
	for _, by := range g.Sealed {
		for number, n := range by {
			if known := g.Find(number); number != 1 && (known == nil || !known.RetiredAt.IsZero()) {
				lost += n
			}
		}
	}
	for i := range g.All {
		if g.State(&g.All[i]) == upkeep.GenerationReplaced {
			replaced = append(replaced, strconv.Itoa(g.All[i].Number))
		}
	}
	switch {
	case lost > 0:
		d.add("generations", Wrong, "%s sealed with a generation that is retired or unknown: put a file of the secret that has it on every instance", till.Count(lost, "value is", "values are"))
	case len(replaced) > 0 && g.At.Sub(g.Find(used).UsedAt) > maxRotation:
		d.add("generations", Risky, "%d seals since %s, and %s was not retired: see 'till secret retire'", used, g.Find(used).UsedAt, strings.Join(replaced, ", "))
	case len(replaced) > 0:
		d.add("generations", Fine, "%d seals; %s is replaced, and can be retired when nothing needs it", used, strings.Join(replaced, ", "))
	default:
		d.add("generations", Fine, "%d seals, and nothing needs another one", used)
	}
	return nil
}
