package quota_test

import (
	"errors"
	"sync"
	"testing"

	"till"
	"till/internal/quota"
)

func TestWhatDoesNotFitIsNotTaken(t *testing.T) {
	t.Parallel()
	a, b := till.ID{1}, till.ID{2}
	q := quota.New(10, 6)
	for _, c := range []struct {
		client till.ID
		take   int64
		want   error
		held   int64
	}{
		{a, 4, nil, 4},
		{a, 3, quota.ErrClientFull, 4},
		{a, 2, nil, 6},
		{b, 5, quota.ErrFull, 6},
		{b, 4, nil, 10},
		{b, 1, quota.ErrFull, 10},
		{b, 0, nil, 10},
	} {
		if err := q.Take(c.client, c.take); !errors.Is(err, c.want) || q.Held() != c.held {
			t.Errorf("take %d: %v, %d are held; want %v, %d", c.take, err, q.Held(), c.want, c.held)
		}
	}
	q.Give(a, 6)
	if q.Held() != 4 || q.HeldBy(a) != 0 || q.HeldBy(b) != 4 {
		t.Errorf("after all of a client's were given back: %d held, %d and %d", q.Held(), q.HeldBy(a), q.HeldBy(b))
	}
	if err := q.Take(a, 6); err != nil {
		t.Errorf("what was given back cannot be taken again: %v", err)
	}
}

func TestSomeIsTakenSoThatOthersFindSomeToo(t *testing.T) {
	t.Parallel()
	a, b := till.ID{1}, till.ID{2}
	q := quota.New(1000, 400)
	for _, c := range []struct {
		client     till.ID
		most, want int64
	}{{a, 50, 50}, {a, 500, 87}, {b, 500, 100}, {a, 0, 0}, {b, 10, 10}} {
		if got := q.TakeSome(c.client, c.most); got != c.want {
			t.Errorf("some of %d: %d, want %d", c.most, got, c.want)
		}
	}
	if q.HeldBy(a) != 137 || q.HeldBy(b) != 110 || q.Held() != 247 {
		t.Errorf("%d and %d, %d in all", q.HeldBy(a), q.HeldBy(b), q.Held())
	}
	if q.Take(a, 263) != nil || q.TakeSome(a, 9) != 0 {
		t.Error("of a full quota some was taken")
	}
}

func TestNobodyGivesBackWhatWasNotTaken(t *testing.T) {
	t.Parallel()
	q := quota.New(10, 10)
	if err := q.Take(till.ID{1}, 3); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("4 of 3 bytes were given back")
		}
	}()
	q.Give(till.ID{1}, 4)
}

func TestManyTakeAtOnce(t *testing.T) {
	t.Parallel()
	q := quota.New(1000, 100)
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			client := till.ID{byte(n % 5)}
			for range 1000 {
				if q.Take(client, 7) == nil {
					if held := q.HeldBy(client); held > 100 {
						t.Errorf("a client holds %d of 100", held)
					}
					q.Give(client, 7)
				}
			}
		})
	}
	all.Wait()
	if q.Held() != 0 {
		t.Errorf("%d are held by nobody", q.Held())
	}
}
