package backup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"till"
)

// minAge is how old a backup is at least when it is deleted: somebody notices within that
// time that the newer ones are worth less.
const minAge = 48 * time.Hour

// Mark is what a small file beside a backup says about it. Its name is that of the backup
// with the mark at its end.
type Mark string

// The marks.
const (
	Drilled Mark = ".drilled" // it was restored on trial, and its books were right
	Held    Mark = ".held"    // a person wants it kept, until the mark is deleted
)

// Guard says what is not deleted, whatever Keep says.
type Guard struct {
	Now  till.Time // of the database
	Stop string    // why nothing at all is deleted; "" means that something may be

	// Drilled is the snapshot of a backup that the database knows to be good; zero means none.
	Drilled till.Time

	// Lost are the times that restores have lost. A backup from there is the only record of
	// what was written then.
	Lost []Span
}

// Span is a time, without its first moment.
type Span struct{ From, To till.Time }

// Why says why a backup stays that Keep would delete.
type Why string

// The reasons.
const (
	WhyYoung     Why = "younger than 48 hours"
	WhyUndrilled Why = "not older than a drilled backup"
	WhyHeld      Why = "held"
	WhyLost      Why = "of a time that a restore has lost"
)

// Pruned is what Prune did.
type Pruned struct {
	Removed []Name
	Stop    string      // why nothing was deleted, though something could have been
	Stayed  map[Why]int // how many backups stayed that Keep would delete
}

// Prune deletes the backups of an installation that Keep does not keep. It deletes none
// that is younger than MinAge, held, of a lost time, or not older than a backup that was
// drilled; so a backup that is known to be good always stays, and all that are newer do.
func (k Keep) Prune(ctx context.Context, p Place, installation string, g Guard) (out Pruned, err error) {
	if k == (Keep{}) {
		return out, nil
	}
	list, err := p.List(ctx)
	if err != nil {
		return out, err
	}
	names, marks := sortNames(list, installation), marksIn(list)
	surplus := k.surplus(names)
	if len(surplus) == 0 {
		return out, nil
	}
	if g.Stop != "" {
		out.Stop = g.Stop
		return out, nil
	}
	out.Stayed = map[Why]int{}
	good := g.newestGood(names, marks)
	for _, n := range surplus {
		if why := g.keeps(n, good, marks); why != "" {
			out.Stayed[why]++
			continue
		}
		if err := p.Remove(ctx, n.String()); err != nil {
			return out, fmt.Errorf("delete an old backup: %w", err)
		}
		out.Removed = append(out.Removed, n)
		if marks[n.String()+string(Drilled)] {
			if err := p.Remove(ctx, n.String()+string(Drilled)); err != nil {
				return out, fmt.Errorf("delete the mark of an old backup: %w", err)
			}
		}
	}
	return out, nil
}

// newestGood returns when the newest backup was taken that was drilled; zero if none was.
func (g *Guard) newestGood(names []Name, marks map[string]bool) till.Time {
	known := NameOf(&Manifest{TakenAt: g.Drilled.String()}, false).Taken
	for _, n := range names {
		if marks[n.String()+string(Drilled)] || !g.Drilled.IsZero() && n.Taken == known {
			return n.Taken
		}
	}
	return 0
}

// keeps returns why a backup stays, "" if it need not.
func (g *Guard) keeps(n Name, good till.Time, marks map[string]bool) Why {
	for _, lost := range g.Lost {
		if n.Taken > lost.From && n.Taken <= lost.To {
			return WhyLost
		}
	}
	switch {
	case marks[n.String()+string(Held)]:
		return WhyHeld
	case g.Now.Sub(n.Taken) < minAge:
		return WhyYoung
	case n.Taken >= good:
		return WhyUndrilled
	}
	return ""
}

// marksIn returns the marks among the names of a place.
func marksIn(list []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range list {
		for _, m := range []Mark{Drilled, Held} {
			if name, ok := strings.CutSuffix(s, string(m)); ok {
				if _, ok := ParseName(name); ok {
					out[s] = true
				}
			}
		}
	}
	return out
}
