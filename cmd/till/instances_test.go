package main

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"till/store/storetest"
)

// TestInstances runs three servers on one PostgreSQL, or one cluster, under load, while one
// after the other is killed, held still, or asked to stop, and
// comes back: each kind three times. At the end the books are compared, also with those of a client
// who was sent everything by webhook. If TILL_SECONDS says for how
// long, it goes on so long, under more load.
func TestInstances(t *testing.T) {
	t.Parallel()
	e := storetest.Shared(t)
	times, limit, between := 9, time.Hour, 60*time.Millisecond
	if testing.Short() {
		times = 3
	}
	if n, err := strconv.Atoi(os.Getenv("TILL_SECONDS")); err == nil {
		times, limit, between = math.MaxInt, time.Duration(n)*time.Second, loadPause
	}
	url := e.Config(t).Path
	k := &killing{t: t, dir: t.TempDir(), database: url, book: url, answered: map[string]string{}}
	// One only takes payments in, and leaves the work to the others.
	start := func(i int) *instance {
		if i == 0 {
			return k.start("--role", "api")
		}
		return k.start()
	}
	servers := []*instance{start(0), start(1), start(2)}
	told := k.receive()

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		k.load(ctx, 4, between)
	}()
	counts := map[string]int{}
	for n := 0; n < times && ctx.Err() == nil; n++ {
		pause(ctx, time.Duration(300+rand.IntN(700))*time.Millisecond)
		i := rand.IntN(len(servers))
		switch n % 3 {
		case 0:
			counts["kill -9"]++
			k.end(servers[i], syscall.SIGKILL)
			servers[i] = start(i)
		case 1:
			// Past nothing in particular; the long pause is the soak's.
			counts["SIGSTOP"]++
			servers[i].cmd.Process.Signal(syscall.SIGSTOP)
			pause(ctx, time.Duration(500+rand.IntN(1500))*time.Millisecond)
			servers[i].cmd.Process.Signal(syscall.SIGCONT)
		case 2:
			counts["SIGTERM"]++
			k.end(servers[i], syscall.SIGTERM)
			servers[i] = start(i)
		}
	}
	cancel()
	<-loaded
	k.retryAll()
	k.settle()
	told.await(k)
	for _, s := range servers {
		k.end(s, syscall.SIGTERM)
	}
	k.verify()
	k.compareBooks()
	told.compare(k)
	t.Logf("%v, %d payments answered, %d creates without an answer tried again", counts, len(k.answered), k.retried)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
