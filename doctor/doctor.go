package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"till/books"
	"till/internal/db/postgres"
	"till/internal/db/sqlite"
	"till/internal/system"
	"till/operators"
	"till/secret"
	"till/server"
	"till/store"
)

// Setup says where an installation is and how it is served. What is "" is not known, and
// not examined.
type Setup struct {
	operators.Source // a secret beside a SQLite file is not compared with the database

	Listen         string
	AdminListen    string
	AdminTokenFile string

	Certificate string              // a file in PEM, served by the server or by a proxy
	Served      []ServedCertificate // without such a file, what the running server says of its own
}

// Severity is how bad a finding is.
type Severity int

// The severities.
const (
	Fine Severity = iota
	Risky
	Wrong
)

func (v Severity) String() string { return [...]string{"ok", "warning", "wrong"}[v] }

// Finding is what one check has found.
type Finding struct {
	Name    string // what was checked
	Verdict Severity
	Detail  string // no secret, no phone number
}

// Findings is what Examine has found.
type Findings struct {
	All      []Finding
	Troubles []books.Trouble // what 'till status' says
	Damaged  bool            // the database cannot be read, and most was not checked
}

// Worst returns the worst verdict.
func (f *Findings) Worst() (worst Severity) {
	for _, one := range f.All {
		worst = max(worst, one.Verdict)
	}
	return worst
}

// Examine checks a setup for what could lose an acknowledged payment or stop the service.
// It changes nothing, moves no money, and may run beside a server. It tests the operators
// only if the setup names a configuration.
func Examine(ctx context.Context, s Setup) (*Findings, error) {
	d := &doctor{}
	examine := d.examineSQLite
	if store.IsPostgres(s.Database) {
		examine = d.examinePostgres
	}
	if err := examine(ctx, s.Database); err != nil {
		return nil, err
	}
	if !d.Damaged {
		if err := d.examineStore(ctx, s.Database, s.SecretFile); err != nil {
			return nil, err
		}
	}
	d.examineExposure(&s)
	if s.Config != "" && !d.Damaged {
		if err := d.examineOperators(ctx, &s); err != nil {
			return nil, err
		}
	}
	d.examineCertificates(&s, time.Now())
	return &d.Findings, nil
}

// doctor collects findings.
type doctor struct {
	Findings

	silentNodes bool // of a cluster: what is read of all clients cannot be read
}

func (d *doctor) add(name string, v Severity, detail string, args ...any) {
	d.All = append(d.All, Finding{name, v, fmt.Sprintf(detail, args...)})
}

// addIf adds a finding of severity v if a condition holds, else of a fine one.
func (d *doctor) addIf(name string, bad bool, v Severity, otherwise, detail string) {
	if bad {
		d.add(name, v, "%s", detail)
		return
	}
	d.add(name, Fine, "%s", otherwise)
}

// examineStore checks what both engines have.
func (d *doctor) examineStore(ctx context.Context, database, secretFile string) error {
	s, err := store.Open(ctx, store.Config{Path: database, Readers: 1})
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.CheckSchema(ctx)
	var schema *store.SchemaError
	switch {
	case errors.As(err, &schema):
		d.add("schema", Wrong, "%s", schema.Detail)
		return nil // nothing further can be read
	case err != nil:
		return err
	}
	d.add("schema", Fine, "it is this program's")
	if err := d.examineIdentities(ctx, s); err != nil {
		return err
	}
	if err := d.examineLevel(ctx, s); err != nil {
		return err
	}
	if d.silentNodes {
		d.add("the rest", Risky, "not checked: it is read of all clients, and nodes do not answer")
		return nil
	}
	st, err := server.ReadStatus(ctx, s, database)
	if err != nil {
		return err
	}
	strays := int(min(st.Live.OpenStrays()+st.Test.OpenStrays(), books.MaxStrays))
	d.addIf("strays", strays > 0, Risky, "none is open", fmt.Sprintf("%s: money that names us and that nobody has; see 'till strays'", books.OpenStraysText(strays)))
	d.addHolds(st)
	if err := d.examineWaiting(ctx, s, st); err != nil {
		return err
	}
	d.addInstances(st.Versions())
	if err := d.examineBackups(ctx, s); err != nil {
		return err
	}
	if err := d.examineGenerations(ctx, s); err != nil {
		return err
	}
	d.addTroubles(st)
	if secretFile == "" {
		return nil
	}
	if err := secret.CheckFile(ctx, s, secretFile); err != nil {
		d.add("secret", Wrong, "%s: %v", secretFile, err)
		return nil
	}
	d.add("secret", Fine, "it is the one that the database was made with")
	return nil
}

// sessionsPerInstance is how many connections one instance may open to a database on so many
// nodes of Citus, or on one server: for writes, reads, hints and the sandbox's database.
func sessionsPerInstance(nodes int) int { return postgres.MaxSessions(nodes) + 2 + 8 }

// maxClockOffset is the largest tolerated difference between clocks. A larger
// one misleads readers of logs; leases and due times use the database's clock.
const maxClockOffset = 2 * time.Second

// oldestPostgres is the oldest server that the tests run on.
const oldestPostgres = 15

func (d *doctor) examinePostgres(ctx context.Context, database string) error {
	h, err := postgres.Diagnose(ctx, database)
	if err != nil {
		return err
	}
	d.addIf("version", h.Version < oldestPostgres, Wrong, fmt.Sprintf("PostgreSQL %d", h.Version),
		fmt.Sprintf("PostgreSQL %d is older than %d, the oldest that Till supports", h.Version, oldestPostgres))
	d.addIf("writes", h.ReadOnly, Wrong, "the server takes writes", "the server takes no writes: it is a standby or set to read only")
	d.addIf("fsync", !h.FSync || !h.FullPageWrites, Risky, "commits reach the disk",
		"fsync or full_page_writes is off: a power cut can lose payments and the whole database")
	commit := h.SynchronousCommit
	d.addIf("synchronous_commit", commit == "off" || commit == "local" && h.StandbyNames != "", Wrong, "a commit is answered when it is kept ("+commit+")",
		"synchronous_commit is "+commit+": payments are acknowledged before they are kept; set it to on")
	d.examineStandbys(h)
	d.addArchive(h, time.Now())
	d.addIf("clock", h.ClockOffset.Abs() > maxClockOffset, Risky, "this machine and the database agree",
		fmt.Sprintf("the database's clock is %s off this machine's; run a time service on both", h.ClockOffset.Round(time.Millisecond)))
	c, err := postgres.DiagnoseCluster(ctx, database)
	if err != nil {
		return err
	}
	d.addConnections(h, c)
	if c != nil {
		d.addCluster(c)
	}
	return nil
}

// addConnections warns if there is no room for another instance. Citus also wants half of the
// coordinator's connections for itself before it copies a table from there (its
// citus.local_shared_pool_size).
func (d *doctor) addConnections(h *postgres.Diagnosis, c *postgres.Cluster) {
	nodes := 1
	if c != nil {
		nodes = c.ClientNodes
	}
	each := sessionsPerInstance(nodes)
	says := fmt.Sprintf("%d of %d are in use and an instance takes up to %d; raise max_connections", h.Connections, h.MaxConnections, each)
	bad := h.MaxConnections-h.Connections < each
	if c != nil && h.Connections+each > h.MaxConnections/2 {
		bad, says = true, says+": a node can be added only while less than half of them are in use"
	}
	d.addIf("connections", bad, Risky, fmt.Sprintf("%d of %d are in use; an instance takes up to %d", h.Connections, h.MaxConnections, each), says)
}

// examineStandbys warns if a failover could lose acknowledged commits.
func (d *doctor) examineStandbys(h *postgres.Diagnosis) {
	switch {
	case h.HiddenStates > 0:
		d.add("standbys", Risky, "this user may not see how they follow; grant it pg_monitor")
	case h.StandbyNames != "" && h.Synchronous == 0:
		d.add("standbys", Wrong, "synchronous_standby_names is %q and no such standby is connected: every commit waits", h.StandbyNames)
	case h.Synchronous > 0:
		d.add("standbys", Fine, "%d of %d are synchronous: a failover to one of them loses nothing that was acknowledged", h.Synchronous, h.Standbys)
	case h.Standbys > 0:
		d.add("standbys", Risky, "%d follow asynchronously: a failover can lose acknowledged payments; set synchronous_standby_names", h.Standbys)
	default:
		d.add("standbys", Risky, "none is connected: if this machine is lost, so is what its last backup lacks")
	}
}

func (d *doctor) examineSQLite(ctx context.Context, path string) error {
	h, err := sqlite.Diagnose(path)
	if err != nil {
		return err
	}
	if d.Damaged = h.Damage != "" || h.Log != ""; h.Log != "" {
		d.addIf("file", true, Wrong, "", h.Log)
		return nil
	}
	d.addIf("file", d.Damaged, Wrong, "its pages are whole", "it is damaged: "+h.Damage+"; put it aside and restore a backup")
	if h.Journal != "" {
		d.addIf("journal", h.Journal != "wal", Risky, "a write-ahead log, as the server wants it",
			"it is "+h.Journal+" and not a write-ahead log; the next start of the server changes that")
	}
	d.examineDisk(path)
	d.examineLock(path)
	return nil
}

// examineLock reports which server uses the file. It reads the lock's owner
// and does not try the lock: that could disturb a server that starts.
func (d *doctor) examineLock(path string) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	text, _ := os.ReadFile(path + ".lock")
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !system.IsRunning(pid) {
		d.add("server", Fine, "none is using the file")
		return
	}
	d.add("server", Fine, "process %d is using the file", pid)
	d.examineFiles(pid)
}
