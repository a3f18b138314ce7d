package backup

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"till"
)

// Keep says which backups stay: the newest of each of the last hours, days, weeks
// and months. The zero value keeps all.
type Keep struct{ Hours, Days, Weeks, Months int }

// maxKept is the largest number of a Keep.
const maxKept = 10_000

// ParseKeep reads 24h,7d,5w,12m: parts may be missing. "" keeps all.
func ParseKeep(text string) (k Keep, err error) {
	for _, part := range strings.Split(text, ",") {
		if text == "" {
			break
		}
		part = strings.TrimSpace(part)
		if part == "" {
			return Keep{}, errKeep(text)
		}
		n, err := strconv.Atoi(part[:len(part)-1])
		into := map[byte]*int{'h': &k.Hours, 'd': &k.Days, 'w': &k.Weeks, 'm': &k.Months}[part[len(part)-1]]
		if err != nil || into == nil || *into != 0 || n < 1 || n > maxKept {
			return Keep{}, errKeep(text)
		}
		*into = n
	}
	return k, nil
}

func errKeep(text string) error {
	return fmt.Errorf("%q does not say what to keep: write 24h,7d,5w,12m for the newest of 24 hours, 7 days, 5 weeks and 12 months", text)
}

// surplus returns those of some names, the newest first, that need not be kept.
func (k Keep) surplus(names []Name) (out []Name) {
	type series struct {
		most int
		of   func(t till.Time) string
		seen map[string]bool
	}
	all := []*series{
		{k.Hours, func(t till.Time) string { return t.Std().Format("2006-01-02T15") }, map[string]bool{}},
		{k.Days, func(t till.Time) string { return t.Std().Format(time.DateOnly) }, map[string]bool{}},
		{k.Weeks, func(t till.Time) string { y, w := t.Std().ISOWeek(); return fmt.Sprint(y, w) }, map[string]bool{}},
		{k.Months, func(t till.Time) string { return t.Std().Format("2006-01") }, map[string]bool{}},
	}
	for i, n := range names {
		keep := i == 0
		for _, s := range all {
			if at := s.of(n.Taken); !s.seen[at] && len(s.seen) < s.most {
				s.seen[at], keep = true, true
			}
		}
		if !keep {
			out = append(out, n)
		}
	}
	return out
}
