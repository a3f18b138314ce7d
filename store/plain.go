package store

import (
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"till/internal/system"
)

// PlainHosts returns the hosts, other than this machine, that a PostgreSQL URL
// lets be spoken to without TLS: its sslmode is disable or allow, or prefer, as
// it is where nothing is said. Whoever stands in between can then read and
// change everything.
func PlainHosts(database string) (hosts []string) {
	if !IsPostgres(database) {
		return nil
	}
	c, err := pgx.ParseConfig(database)
	if err != nil {
		return nil // whoever opens it will say so
	}
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	for _, f := range all {
		network, _ := pgconn.NetworkAddress(f.Host, f.Port)
		if f.TLSConfig == nil && network != "unix" && !system.IsLoopback(f.Host) && !slices.Contains(hosts, f.Host) {
			hosts = append(hosts, f.Host)
		}
	}
	return hosts
}
