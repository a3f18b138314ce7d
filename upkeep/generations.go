package upkeep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"till"
	"till/internal/seal"
	"till/store"
	"till/store/access"
	"till/store/admin"
)

// Generations has what is known about the generations of an installation's secret.
type Generations struct {
	All       []admin.Generation // by number; none: only the first ever was
	Level     int
	Instances []*admin.Instance
	Sealed    map[admin.SealedKind]map[int]int64 // values by generation
	At        till.Time                          // when it was read
}

// ReadGenerations returns the generations, what each one sealed, and who holds them.
func ReadGenerations(ctx context.Context, s *store.Store) (g Generations, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		if g, err = readGenerations(ctx, tx); err != nil {
			return err
		}
		g.Sealed, err = admin.CountSealed(ctx, tx)
		return err
	})
	return g, err
}

func readGenerations(ctx context.Context, tx *store.Tx) (g Generations, err error) {
	if g.All, err = admin.Generations(ctx, tx); err != nil {
		return g, err
	}
	l, err := readLevels(ctx, tx)
	if err != nil {
		return g, err
	}
	g.Level, g.Instances, g.At = l.Level, l.Instances, l.At
	return g, admin.ReadInstanceStates(ctx, tx, g.Instances)
}

// UsedGeneration returns the number of the generation that seals.
func UsedGeneration(all []admin.Generation) int {
	used, at := 1, till.Time(0)
	for _, g := range all {
		if g.UsedAt > at {
			used, at = g.Number, g.UsedAt
		}
	}
	return used
}

// Used returns the number of the generation that seals.
func (g *Generations) Used() int { return UsedGeneration(g.All) }

// GenerationState is what a generation is for.
type GenerationState string

// The states of a generation.
const (
	GenerationAdded    GenerationState = "added"    // not used yet
	GenerationInUse    GenerationState = "in use"   // it seals
	GenerationReplaced GenerationState = "replaced" // it opens what it sealed
	GenerationRetired  GenerationState = "retired"
)

// State returns what a generation is for.
func (g *Generations) State(of *admin.Generation) GenerationState {
	switch {
	case !of.RetiredAt.IsZero():
		return GenerationRetired
	case of.Number == g.Used():
		return GenerationInUse
	case of.UsedAt.IsZero():
		return GenerationAdded
	}
	return GenerationReplaced
}

// Find returns a generation, nil if there is none of this number.
func (g *Generations) Find(number int) *admin.Generation {
	for i := range g.All {
		if g.All[i].Number == number {
			return &g.All[i]
		}
	}
	return nil
}

// SealedBy returns how many values a generation sealed that are still there.
func (g *Generations) SealedBy(number int) (n int64) {
	for _, by := range g.Sealed {
		n += by[number]
	}
	return n
}

// running returns the instances that run and for which a condition holds, as text.
func (g *Generations) running(is func(i *admin.Instance) bool) string {
	var names []string
	for _, i := range g.Instances {
		if i.Running(g.At) && is(i) {
			names = append(names, i.ID.String())
		}
	}
	return strings.Join(names, ", ")
}

// The reasons for which a change of generations is refused.
var (
	ErrGenerationLevel   = fmt.Errorf("the release before cannot read what another generation sealed: run 'till level raise' first, which makes the level %d", admin.LevelGenerations)
	errGenerationUnknown = errors.New("there is no such generation: 'till secret list' shows those that there are")
	ErrGenerationRetired = errors.New("the generation is retired")
	ErrNotYet            = errors.New("not yet") // it may pass within seconds
	ErrGenerationOther   = errors.New("another key was added under this number: take the file in which it is")
)

// changeGenerations runs a change, with other changes kept waiting, and records it in the
// audit log of the installation. The change returns "" if there is nothing to do.
func changeGenerations(ctx context.Context, s *store.Store, by, action string, change func(tx *store.Tx, g *Generations) (detail string, err error)) (changed bool, err error) {
	_, err = store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, again bool) error {
		changed = again
		if err := admin.LockInstallation(ctx, tx); err != nil {
			return err
		}
		g, err := readGenerations(ctx, tx)
		if err != nil {
			return err
		}
		detail, err := change(tx, &g)
		if err != nil || detail == "" {
			return err
		}
		changed = true
		return store.AuditClients(ctx, tx, []till.ID{till.House}, by, action, detail)
	})
	return changed && err == nil, err
}

// AddGeneration records a generation whose key is in the file of the secret. first is the
// check of the first one. It returns false if the generation is recorded already.
func AddGeneration(ctx context.Context, s *store.Store, number int, check, first []byte, by string) (bool, error) {
	return changeGenerations(ctx, s, by, "secret.add", func(tx *store.Tx, g *Generations) (string, error) {
		switch known := g.Find(number); {
		case g.Level < admin.LevelGenerations:
			return "", ErrGenerationLevel
		case number < 2 || number > seal.MaxGeneration:
			return "", fmt.Errorf("a generation that is added has a number from 2 to %d", seal.MaxGeneration)
		case known != nil && !bytes.Equal(known.Check, check):
			return "", ErrGenerationOther
		case known != nil && !known.RetiredAt.IsZero():
			return "", ErrGenerationRetired
		case known != nil:
			return "", nil
		}
		if len(g.All) == 0 {
			i, err := admin.ReadInstallation(ctx, tx)
			if err != nil || i == nil {
				return "", errors.Join(err, errors.New("the database has not been started yet"))
			}
			if err := admin.InsertGeneration(ctx, tx, &admin.Generation{Number: 1, Check: first, AddedAt: i.CreatedAt, UsedAt: i.CreatedAt}); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("generation %d", number), admin.InsertGeneration(ctx, tx, &admin.Generation{Number: number, Check: check, AddedAt: tx.Now()})
	})
}

// UseGeneration makes all instances seal with a generation. It is refused while an instance
// runs that does not hold it, and could not open what others seal. It returns false if the
// generation is in use already. It ends every session and link, as RetireGeneration does.
func UseGeneration(ctx context.Context, s *store.Store, number int, by string) (bool, error) {
	return changeGenerations(ctx, s, by, "secret.use", func(tx *store.Tx, g *Generations) (string, error) {
		used := g.Used()
		switch known := g.Find(number); {
		case number == used:
			return "", nil
		case known == nil:
			return "", errGenerationUnknown
		case !known.RetiredAt.IsZero():
			return "", ErrGenerationRetired
		}
		if lack := g.running(func(i *admin.Instance) bool { return !i.Holds(number) }); lack != "" {
			return "", fmt.Errorf("%w: instances run that do not hold generation %d, and could not open what it seals: put the file of the secret there, and they read it within seconds: %s", ErrNotYet, number, lack)
		}
		// The clock may have been set back.
		at := max(tx.Now(), g.Find(used).UsedAt+1)
		if err := admin.UseGeneration(ctx, tx, number, at); err != nil {
			return "", err
		}
		return fmt.Sprintf("from generation %d to %d", used, number), access.EndAllAccess(ctx, tx)
	})
}

// callbackMargin is how long after a generation was put into use an instance may still have
// given operators addresses of the one before.
const callbackMargin = time.Minute

// maxSentCounted is up to how many open payments and payouts are counted.
const maxSentCounted = 10_000

// RetireGeneration ends a generation. It is refused while something needs it: it seals, a
// value is sealed with it, or an operator may call an address of its time. It returns false
// if the generation is retired already. It ends every session and link: who had the key
// may have signed in by a form that they wrote.
func RetireGeneration(ctx context.Context, s *store.Store, number int, by string) (bool, error) {
	return changeGenerations(ctx, s, by, "secret.retire", func(tx *store.Tx, g *Generations) (string, error) {
		used := g.Used()
		known := g.Find(number)
		switch {
		case number == used:
			return "", errors.New("it is the generation that seals: put another one into use first")
		case known == nil:
			return "", errGenerationUnknown
		case !known.RetiredAt.IsZero():
			return "", nil
		case known.UsedAt > 0:
			if err := g.needed(ctx, tx, number); err != nil {
				return "", err
			}
		}
		if err := admin.RetireGeneration(ctx, tx, number); err != nil {
			return "", err
		}
		return fmt.Sprintf("generation %d", number), access.EndAllAccess(ctx, tx)
	})
}

// needed returns an error that says what still needs a generation that was in use.
func (g *Generations) needed(ctx context.Context, tx *store.Tx, number int) (err error) {
	if g.Sealed, err = admin.CountSealed(ctx, tx); err != nil {
		return err
	}
	if n := g.SealedBy(number); n > 0 {
		return fmt.Errorf("%w: generation %d is needed by values that it sealed: %d. A running service seals them anew, or 'till secret reseal'", ErrNotYet, number, n)
	}
	if still := g.running(func(i *admin.Instance) bool { return i.Sealing != g.Used() }); still != "" {
		return fmt.Errorf("%w: instances do not seal with generation %d yet; they do within seconds: %s", ErrNotYet, g.Used(), still)
	}
	n, err := admin.SentBefore(ctx, tx, g.Find(g.Used()).UsedAt.Add(callbackMargin), maxSentCounted)
	if err == nil && n > 0 {
		err = fmt.Errorf("payments and payouts are open that were sent while generation %d was in use: %d. Their operators may call an address of that time: "+
			"try again when they are over, which with the reads for late money takes up to some days", number, n)
	}
	return err
}
