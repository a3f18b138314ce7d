package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"till/internal/db"
)

// Diagnosis is the state of a PostgreSQL server, as far as it can lose an
// acknowledged payment or stop the service.
type Diagnosis struct {
	Version           int // the major one
	FSync             bool
	FullPageWrites    bool
	SynchronousCommit string
	StandbyNames      string // synchronous_standby_names
	ReadOnly          bool   // a standby, or set to read only
	Connections       int    // in use
	MaxConnections    int
	ClockOffset       time.Duration // the server's clock minus ours

	Standbys     int // that are connected
	Synchronous  int // of them
	HiddenStates int // of those whose state this user may not see

	Archives      bool      // its log is archived
	Archived      time.Time // when the last segment was; zero: none
	ArchiveFailed time.Time // when that failed last; zero: never
}

// Diagnose reads the state of the server behind a URL. It changes nothing and
// needs no schema.
func Diagnose(ctx context.Context, url string) (*Diagnosis, error) {
	conn, err := connectOnce(ctx, url)
	if err != nil {
		return nil, err
	}
	defer hangup(conn)

	d := &Diagnosis{}
	sent := time.Now()
	var clock time.Time
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&clock); err != nil {
		return nil, err
	}
	d.ClockOffset = clock.Sub(sent.Add(time.Since(sent) / 2))
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int / 10000, current_setting('fsync')::bool,
			current_setting('full_page_writes')::bool, current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
			pg_is_in_recovery() OR current_setting('transaction_read_only')::bool,
			(SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL)::int, current_setting('max_connections')::int`).
		Scan(&d.Version, &d.FSync, &d.FullPageWrites, &d.SynchronousCommit, &d.StandbyNames, &d.ReadOnly, &d.Connections, &d.MaxConnections)
	if err != nil {
		return nil, err
	}
	err = conn.QueryRow(ctx, `SELECT count(*)::int, count(*) FILTER (WHERE sync_state IN ('sync', 'quorum'))::int,
			count(*) FILTER (WHERE sync_state IS NULL)::int
		FROM pg_stat_replication WHERE application_name <> 'pg_basebackup'`).Scan(&d.Standbys, &d.Synchronous, &d.HiddenStates)
	if err != nil {
		return nil, err
	}
	var archived, failed *time.Time
	err = conn.QueryRow(ctx, `SELECT current_setting('archive_mode') <> 'off', last_archived_time, last_failed_time FROM pg_stat_archiver`).
		Scan(&d.Archives, &archived, &failed)
	if archived != nil {
		d.Archived = *archived
	}
	if failed != nil {
		d.ArchiveFailed = *failed
	}
	return d, err
}

// connectOnce opens a connection outside any pool.
func connectOnce(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	c := config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 5 * time.Second
	}
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", db.ErrUnavailable, err)
	}
	return conn, nil
}
