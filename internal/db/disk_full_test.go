package db

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// observed is what an Observer was told.
type observed struct{ results []string }

func (o *observed) Transaction(_, result string, _ time.Duration) {
	o.results = append(o.results, result)
}

func (o *observed) Waited(string, time.Duration) {}

// A full disk has a name of its own, is noticed by the first write that finds it, and is
// forgotten when writes find room again.
func TestAFullDiskIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fail: map[string][]error{"commit": {fmt.Errorf("%w: no room", ErrDiskFull)}}}
		d, told := New(f, 1, nil), &observed{}
		d.Observe(told)
		if d.DiskFull() {
			t.Error("it is full before anybody has written")
		}
		d.Update(t.Context(), Foreground, func(*Tx) error { return nil })
		if !d.DiskFull() || fmt.Sprint(told.results) != "[disk_full]" {
			t.Errorf("full: %t, told %v", d.DiskFull(), told.results)
		}
		time.Sleep(fullFor)
		if d.DiskFull() {
			t.Error("it is full for ever")
		}
	})
}
