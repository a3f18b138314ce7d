package server

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// However often somebody asks whether the service is ready, the database is
// asked four times a second.
func TestReadinessLooksOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		var away atomic.Bool
		r := &kept[error]{time: readyCacheTime, read: func() error {
			looks.Add(1)
			if away.Load() {
				return errors.New("away")
			}
			return nil
		}}
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				if err := r.get(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := looks.Load(); n != 1 {
			t.Errorf("%d looks for a thousand who asked at once", n)
		}
		away.Store(true)
		time.Sleep(readyCacheTime)
		if r.get() == nil {
			t.Error("what was true a while ago was told again")
		}
	})
}
