package server

import (
	"context"
	"time"

	"till/internal/loop"
	"till/secret"
	"till/store"
	"till/store/admin"
)

// pulseInterval is how often an instance records that it is alive.
const pulseInterval = 10 * time.Second

// pulse records in the database that this instance is alive, and what is wrong with it, until
// ctx ends. Then it removes its row: an upgrade need not wait for an instance that has stopped.
func (s *Server) pulse(ctx context.Context) {
	i := admin.Instance{ID: s.id, Version: s.c.Version, Level: admin.Level, Role: string(s.c.Role), StartedAt: s.store.Now()}
	loop.Run(ctx, loop.Options{Interval: pulseInterval, Jitter: 0.1, Wake: s.pulses.C(), Step: func(ctx context.Context) time.Duration {
		i.Generations, i.Sealing, i.Troubles = secret.GenerationsText(s.ring.Generations()), s.ring.Used(), s.troubles()
		err := s.store.UpdateBackground(ctx, func(tx *store.Tx) error { return admin.PulseInstance(ctx, tx, &i) })
		if err != nil && ctx.Err() == nil {
			s.log.Warn("pulse not recorded", "error", err)
		}
		return -1
	}})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := s.store.UpdateBackground(ctx, func(tx *store.Tx) error { return admin.DeleteInstance(ctx, tx, s.id) }); err != nil {
		s.log.Warn("instance not removed", "error", err)
	}
}
