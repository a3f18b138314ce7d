package server

import (
	"context"
	"slices"

	"till/internal/trace"
)

// openTracer makes the tracer. It is closed last, so that it also sends what a stop does.
func (s *Server) openTracer(context.Context) error {
	c := s.c.Trace
	c.Resource = append(slices.Clone(c.Resource),
		trace.Attribute{Key: "service.version", Text: s.c.Version}, trace.Attribute{Key: "service.instance.id", Text: s.id.String()})
	c.Dropped, c.Log = s.meter.TraceDropped, s.log
	if s.tracer = trace.New(c); s.tracer != nil {
		s.undo.push(func() error { s.tracer.Close(); return nil })
	}
	return nil
}
