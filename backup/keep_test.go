package backup

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"till"
)

func TestKeep(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Keep{"": {}, "24h,7d,5w,12m": {24, 7, 5, 12}, "3d": {Days: 3}, "1m, 2h": {Hours: 2, Months: 1}} {
		if got, err := ParseKeep(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"7", "d", "0d", "-1d", "7x", "7d,7d", ",", "7d,", "99999d", "1.5d"} {
		if k, err := ParseKeep(text); err == nil {
			t.Errorf("%q is read as %v", text, k)
		}
	}
}

// Of a year with a backup every hour, the newest of each span stay, and always the
// newest of all.
func TestWhatIsNotKept(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 11, 17, 13, 30, 0, 0, time.UTC)
	var names []Name
	for h := range 365 * 24 {
		names = append(names, Name{Installation: "0123456789ab", Taken: till.TimeOf(last.Add(-time.Duration(h) * time.Hour))})
	}
	k := Keep{Hours: 24, Days: 7, Weeks: 5, Months: 12}
	gone := k.surplus(names)
	var kept []string
	for _, n := range names {
		if !slices.Contains(gone, n) {
			kept = append(kept, n.Taken.Std().Format("01-02T15"))
		}
	}
	// 24 hours; of 7 days the two that hours cover, and 5 more; of the weeks and
	// months those that are older than that.
	want := "[11-17T13 11-17T12 11-17T11 11-17T10 11-17T09 11-17T08 11-17T07 11-17T06 11-17T05 11-17T04 11-17T03 11-17T02 11-17T01 11-17T00 " +
		"11-16T23 11-16T22 11-16T21 11-16T20 11-16T19 11-16T18 11-16T17 11-16T16 11-16T15 11-16T14 11-15T23 11-14T23 11-13T23 11-12T23 11-11T23 " +
		"11-08T23 11-01T23 10-31T23 10-25T23 09-30T23 08-31T23 07-31T23 06-30T23 05-31T23 04-30T23 03-31T23 02-28T23 01-31T23 12-31T23]"
	if fmt.Sprint(kept) != want {
		t.Errorf("kept %v\nwant %s", kept, want)
	}
	if got := (Keep{Months: 1}).surplus(names[:3]); !slices.Equal(got, names[1:3]) {
		t.Errorf("of three in a month %v go", got)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	n := Name{Installation: "0123456789ab", Taken: till.TimeOf(time.Date(2026, 11, 17, 13, 30, 1, 0, time.UTC)), Encrypted: true}
	if got, ok := ParseName(n.String()); !ok || got != n || n.String() != "till-0123456789ab-20261117T133001.000Z.tar.gz.age" {
		t.Errorf("%s is read as %v", n, got)
	}
	for _, s := range []string{"", "till.db", n.String() + ".x.partial", "till-0123456789ab-20261317T133001.000Z.tar.gz", "../" + n.String()} {
		if got, ok := ParseName(s); ok {
			t.Errorf("%q is read as %v", s, got)
		}
	}
}
