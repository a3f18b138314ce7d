package server

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"

	"till"
	"till/internal/system"
	"till/meter"
	"till/store"
)

// openMeter makes the meter. It needs the names of the connections only, so it comes
// before everything that counts.
func (s *Server) openMeter(context.Context) error {
	if s.c.NoMetrics {
		return nil
	}
	names := []string{till.SandboxConnection}
	if s.c.Operators != nil {
		for _, c := range s.c.Operators.Connections {
			names = append(names, c.Name)
		}
	}
	var methods []string
	for _, m := range till.Methods() {
		methods = append(methods, m.Code)
	}
	s.meter = meter.New(meter.Config{Connections: names, Methods: methods, Version: s.c.Version, Revision: revision()})
	s.loops.meter = s.meter
	return nil
}

// revision is the commit that was built, "" if it is not known.
func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, v := range info.Settings {
			if v.Key == "vcs.revision" {
				return v.Value
			}
		}
	}
	return ""
}

// meterStore has what the store knows read at each scrape. None of it waits for the
// database.
func (s *Server) meterStore() {
	m, st := s.meter, s.store
	for _, x := range []struct {
		pool, state string
		read        func() int
	}{
		{"read", "used", func() int { return st.Sessions().ReadUsed }},
		{"read", "idle", func() int { return st.Sessions().ReadIdle }},
		{"write", "used", func() int { return st.Sessions().WriteUsed }},
		{"write", "idle", func() int { return st.Sessions().WriteIdle }},
	} {
		m.Gauge("db_sessions", func() float64 { return float64(x.read()) }, x.pool, x.state)
	}
	m.Gauge("db_clock_offset_seconds", func() float64 { return st.ClockOffset().Seconds() })
	m.Gauge("hints_live", func() float64 { return oneIf(st.HintsLive()) })
	m.Gauge("ready", func() float64 { return oneIf(s.checkReady() == nil) })
	m.Set("schema_level", float64(st.SchemaNumber()))
	if store.IsPostgres(s.c.Database) {
		return
	}
	m.Gauge("db_bytes", func() float64 { return fileSize(s.c.Database) }, "main")
	m.Gauge("db_bytes", func() float64 { return fileSize(s.c.Database + "-wal") }, "wal")
	s.meterDisk(filepath.Dir(s.c.Database), "data")
}

// meterDisk shows the space where a folder is, if the system reports it.
func (s *Server) meterDisk(folder, name string) {
	if _, _, ok := system.DiskSpace(folder); ok {
		s.meter.Gauge("disk_free_bytes", func() float64 { _, free, _ := system.DiskSpace(folder); return float64(free) }, name)
		s.meter.Gauge("disk_size_bytes", func() float64 { size, _, _ := system.DiskSpace(folder); return float64(size) }, name)
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func fileSize(path string) float64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return float64(info.Size())
}
