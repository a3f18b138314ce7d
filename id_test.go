package till_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"till"
)

var noon = till.TimeOf(time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC))

// moments are in order, and cross the microsecond, the millisecond, the
// second and the year.
var moments = []till.Time{
	0, 1, 999, 1000, 1001, noon, noon + 1, noon + 998, noon + 999, noon + 1000, noon + 1001,
	noon.Add(time.Second) - 1, noon.Add(time.Second), noon.Add(365 * 24 * time.Hour),
}

func TestIDsAreInTheOrderOfTimes(t *testing.T) {
	t.Parallel()
	for i := 1; i < len(moments); i++ {
		for range 100 { // the random part must never decide
			a, b := till.NewID(moments[i-1]), till.NewID(moments[i])
			if bytes.Compare(a[:], b[:]) >= 0 || a.String() >= b.String() {
				t.Fatalf("the id of %d is not below that of %d", moments[i-1], moments[i])
			}
		}
	}
}

func TestIDHoldsItsTime(t *testing.T) {
	t.Parallel()
	for _, at := range moments {
		ids := []till.ID{till.NewID(at), till.FirstID(at), till.LastID(at), till.EventID(till.NewID(noon), 7, at)}
		for _, id := range ids {
			if id.Time() != at {
				t.Errorf("%s holds %d, want %d", id, id.Time(), at)
			}
			if id[6]>>4 != 7 || id[8]>>6 != 2 {
				t.Errorf("%s is not a UUIDv7", id)
			}
		}
	}
}

func TestFirstAndLastIDBoundAMoment(t *testing.T) {
	t.Parallel()
	for i, at := range moments {
		first, last := till.FirstID(at), till.LastID(at)
		for n := range int64(100) {
			for _, id := range []till.ID{till.NewID(at), till.EventID(till.NewID(noon), n, at)} {
				if bytes.Compare(first[:], id[:]) > 0 || bytes.Compare(id[:], last[:]) > 0 {
					t.Fatalf("%s is outside %s to %s", id, first, last)
				}
			}
		}
		if i > 0 {
			before := till.LastID(moments[i-1])
			if bytes.Compare(before[:], first[:]) >= 0 {
				t.Errorf("the bounds of %d and %d overlap", moments[i-1], at)
			}
		}
	}
}

func TestIDsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[till.ID]bool{}
	for range 10_000 {
		id := till.NewID(noon)
		if seen[id] {
			t.Fatalf("%s was made twice", id)
		}
		seen[id] = true
	}
}

func TestEventIDHoldsItsSequence(t *testing.T) {
	t.Parallel()
	a, b := till.NewID(noon), till.NewID(noon)
	for _, n := range []int64{0, 1, 2, 255, 256, 1<<32 - 1, 1 << 32, 1<<40 - 1} {
		id := till.EventID(a, n, noon)
		if got := id.EventSequence(); got != n {
			t.Errorf("EventSequence() = %d, want %d", got, n)
		}
		if id != till.EventID(a, n, noon) {
			t.Errorf("the id of event %d is not derived but drawn", n)
		}
		if id == till.EventID(b, n, noon) {
			t.Errorf("two clients have the same id of event %d", n)
		}
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	const canonical = "0198f0a1-b2c3-7d4e-8f5a-6b7c8d9e0f1a"
	good := map[string]string{
		"a canonical id":      canonical,
		"upper case":          "0198F0A1-B2C3-7D4E-8F5A-6B7C8D9E0F1A",
		"mixed case":          "0198f0a1-B2C3-7d4e-8F5A-6b7c8d9e0f1a",
		"a random version 4":  "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
		"the nil UUID":        "00000000-0000-0000-0000-000000000000",
		"the largest of them": "ffffffff-ffff-ffff-ffff-ffffffffffff",
	}
	for name, s := range good {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, err := till.ParseID(s)
			if err != nil {
				t.Fatal(err)
			}
			if got := id.String(); got != string(bytes.ToLower([]byte(s))) {
				t.Errorf("%s comes back as %s", s, got)
			}
			if !bytes.Equal(id.Bytes(), id[:]) {
				t.Error("Bytes() are not the id's")
			}
		})
	}
	bad := map[string]string{
		"nothing":                    "",
		"braces":                     "{" + canonical + "}",
		"a URN":                      "urn:uuid:" + canonical,
		"bare digits":                "0198f0a1b2c37d4e8f5a6b7c8d9e0f1a",
		"36 bare digits":             "0198f0a1b2c37d4e8f5a6b7c8d9e0f1a0198",
		"a digit short":              canonical[:35],
		"a digit more":               canonical + "0",
		"a letter beyond f":          "0198f0a1-b2c3-7d4e-8f5a-6b7c8d9e0f1g",
		"a hyphen in a digit's":      "0198f0a1-b2c3-7d4e-8f5a-6b7c8d9e0f1-",
		"two hyphens":                "0198f0a--b2c3-7d4e-8f5a-6b7c8d9e0f1a",
		"a hyphen misplaced":         "0198f0a-1b2c3-7d4e-8f5a-6b7c8d9e0f1a",
		"underscores":                "0198f0a1_b2c3_7d4e_8f5a_6b7c8d9e0f1a",
		"a space":                    " 198f0a1-b2c3-7d4e-8f5a-6b7c8d9e0f1a",
		"a NUL":                      "0198f0a1-b2c3-7d4e-8f5a-6b7c8d9e0f1\x00",
		"digits of another script":   "٠198f0a1-b2c3-7d4e-8f5a-6b7c8d9e0f1",
		"hyphens in place of digits": "--------------------------------- --",
		"hyphens only":               "------------------------------------",
		"a hyphen after the last":    "0198f0a1-b2c3-7d4e-8f5a--b7c8d9e0f1a",
		"a hyphen in the last group": "0198f0a1-b2c3-7d4e-8f5a-6b-c8d9e0f1a",
		"a group of hyphens":         "0198f0a1-----7d4e-8f5a-6b7c8d9e0f1a",
		"a pair of hyphens":          "--98f0a1-b2c3-7d4e-8f5a-6b7c8d9e0f1a",
	}
	for name, s := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() { // ids come from URLs
				if p := recover(); p != nil {
					t.Errorf("ParseID(%q) panics: %v", s, p)
				}
			}()
			id, err := till.ParseID(s)
			if !errors.Is(err, till.ErrBadID) || !id.IsZero() {
				t.Errorf("ParseID(%q) = %s, %v, want a refusal", s, id, err)
			}
		})
	}
}
