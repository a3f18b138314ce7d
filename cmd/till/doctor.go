package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till/books"
	"till/internal/db/postgres"
	"till/internal/db/sqlite"
	"till/internal/system"
	"till/server"
	"till/store"
)

func newDoctor() *cobra.Command {
	var database, secretFile, configFile, baseURL, listen, tlsCert string
	var asJSON bool
	var b bundle
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a setup for problems",
		Long: `Check a database and its server for what could lose an acknowledged payment or
stop the service. Use it before going live and after each change of the setup.
It changes nothing and may run beside a server. Of a database that Citus has
distributed it checks each node.

With --config it also checks each operator, without moving money. For an operator
that calls one address for all payments, it prints the address to register.

With --bundle it writes what somebody who helps needs to know into a file: version,
configuration, findings, metrics and the last lines of the log. It prints the list
first. No key, secret, phone number, name or client's address is in it. The
exit code is 0 if nothing is wrong, warnings included, 1 if something is wrong,
2 if the check failed.`,
		Example: `  till doctor --database "$TILL_DATABASE" --config till.toml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{}
			examine := d.examineSQLite
			if store.IsPostgres(database) {
				examine = d.examinePostgres
			}
			if err := examine(cmd.Context(), database); err != nil {
				return err
			}
			if !d.damaged {
				if err := d.examineStore(cmd.Context(), database, secretFile); err != nil {
					return err
				}
			}
			d.examineExposure(database, secretFile, listen, baseURL)
			if configFile != "" && !d.damaged {
				o := operatorsOf{database: database, secretFile: secretFile, config: configFile, baseURL: baseURL}
				if err := d.examineOperators(cmd.Context(), o); err != nil {
					return err
				}
			}
			d.examineCertificates(cmd.Context(), tlsCert, b.admin)
			if b.path != "" {
				b.database, b.config = database, configFile
				if err := b.write(cmd, d); err != nil {
					return err
				}
			}
			if err := d.print(cmd.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if d.worst() == isWrong {
				return errProblems
			}
			return nil
		},
	}
	addDatabaseFlag(cmd, &database)
	cmd.Flags().StringVar(&secretFile, "secret-file", "", "the file of the installation's secret, to check that it fits the database")
	cmd.Flags().StringVar(&listen, "listen", "", "the address that 'till serve' listens on, to check who can reach it")
	addOperatorFlags(cmd, &configFile, &baseURL)
	f := cmd.Flags()
	f.StringVar(&b.path, "bundle", "", "a file to write, a tar.gz for whoever helps (default none)")
	f.StringVar(&tlsCert, "tls-cert", "", "the certificate that 'till serve' or a proxy is given, to check when it ends (default the running server's)")
	f.StringVar(&b.admin, "admin-listen", "127.0.0.1:8081", "the running server's admin address, for its certificate and --bundle; empty leaves them out")
	f.BoolVar(&b.profiles, "profiles", false, "add profiles of memory and goroutines to --bundle")
	f.BoolVar(&b.verify, "verify", false, "add the proof of the books to --bundle; it reads the whole database")
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// severity is how bad a finding is.
type severity int

const (
	isFine severity = iota
	isRisky
	isWrong
)

func (v severity) String() string { return [...]string{"ok", "warning", "wrong"}[v] }

// doctor collects findings.
type doctor struct {
	findings []finding
	damaged  bool // there is no use in reading on

	silentNodes bool // of a cluster: what is read of all clients cannot be read
}

type finding struct {
	name    string
	verdict severity
	detail  string
}

func (d *doctor) add(name string, v severity, detail string, args ...any) {
	d.findings = append(d.findings, finding{name, v, fmt.Sprintf(detail, args...)})
}

// addIf adds a finding: severity v if a condition holds, else fine.
func (d *doctor) addIf(name string, bad bool, v severity, otherwise, detail string) {
	if bad {
		d.add(name, v, "%s", detail)
		return
	}
	d.add(name, isFine, "%s", otherwise)
}

func (d *doctor) worst() (worst severity) {
	for _, f := range d.findings {
		worst = max(worst, f.verdict)
	}
	return worst
}

func (d *doctor) print(w io.Writer, asJSON bool) error {
	if asJSON {
		type check struct {
			Name    string `json:"name"`
			Verdict string `json:"verdict"`
			Detail  string `json:"detail"`
		}
		checks := make([]check, len(d.findings))
		for i, f := range d.findings {
			checks[i] = check{f.name, f.verdict.String(), f.detail}
		}
		return printJSON(w, map[string]any{"healthy": d.worst() != isWrong, "checks": checks})
	}
	err := table(w, func(row func(cells ...any)) {
		for _, f := range d.findings {
			row(f.verdict, f.name, f.detail)
		}
	})
	if err == nil {
		_, err = printLine(w, map[severity]string{
			isFine: "Nothing is wrong.", isRisky: "Nothing is wrong; mind the warnings.", isWrong: "Something is wrong.",
		}[d.worst()])
	}
	return err
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
		d.add("schema", isWrong, "%s", schema.Detail)
		return nil // nothing further can be read
	case err != nil:
		return err
	}
	d.add("schema", isFine, "it is this program's")
	if err := d.examineIdentities(ctx, s); err != nil {
		return err
	}
	if err := d.examineLevel(ctx, s); err != nil {
		return err
	}
	if d.silentNodes {
		d.add("the rest", isRisky, "not checked: it is read of all clients, and nodes do not answer")
		return nil
	}
	strays, err := books.CountOpenStrays(ctx, s)
	if err != nil {
		return err
	}
	d.addIf("strays", strays > 0, isRisky, "none is open", fmt.Sprintf("%s: money that names us and that nobody has; see 'till strays'", openStrays(strays)))
	if err := d.examineHolds(ctx, s); err != nil {
		return err
	}
	if err := d.examineWaiting(ctx, s); err != nil {
		return err
	}
	if err := d.examineInstances(ctx, s); err != nil {
		return err
	}
	if err := d.examineBackups(ctx, s); err != nil {
		return err
	}
	if err := d.examineGenerations(ctx, s); err != nil {
		return err
	}
	if secretFile == "" {
		return nil
	}
	if err := server.CheckSecretFile(ctx, s, secretFile); err != nil {
		d.add("secret", isWrong, "%s: %v", secretFile, err)
		return nil
	}
	d.add("secret", isFine, "it is the one that the database was made with")
	return nil
}

// sessionsPerInstance is how many connections one instance may open: for
// writes, reads, hints and the sandbox's database.
const sessionsPerInstance = 20

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
	d.addIf("version", h.Version < oldestPostgres, isWrong, fmt.Sprintf("PostgreSQL %d", h.Version),
		fmt.Sprintf("PostgreSQL %d is older than %d, the oldest that Till supports", h.Version, oldestPostgres))
	d.addIf("writes", h.ReadOnly, isWrong, "the server takes writes", "the server takes no writes: it is a standby or set to read only")
	d.addIf("fsync", !h.FSync || !h.FullPageWrites, isRisky, "commits reach the disk",
		"fsync or full_page_writes is off: a power cut can lose payments and the whole database")
	commit := h.SynchronousCommit
	d.addIf("synchronous_commit", commit == "off" || commit == "local" && h.StandbyNames != "", isWrong, "a commit is answered when it is kept ("+commit+")",
		"synchronous_commit is "+commit+": payments are acknowledged before they are kept; set it to on")
	d.examineStandbys(h)
	d.addArchive(h, time.Now())
	d.addIf("clock", h.ClockOffset.Abs() > maxClockOffset, isRisky, "this machine and the database agree",
		fmt.Sprintf("the database's clock is %s off this machine's; run a time service on both", h.ClockOffset.Round(time.Millisecond)))
	d.addIf("connections", h.MaxConnections-h.Connections < sessionsPerInstance, isRisky,
		fmt.Sprintf("%d of %d are in use; an instance takes up to %d", h.Connections, h.MaxConnections, sessionsPerInstance),
		fmt.Sprintf("%d of %d are in use and an instance takes up to %d; raise max_connections", h.Connections, h.MaxConnections, sessionsPerInstance))
	return d.examineCluster(ctx, database)
}

// examineStandbys warns if a failover could lose acknowledged commits.
func (d *doctor) examineStandbys(h *postgres.Diagnosis) {
	switch {
	case h.HiddenStates > 0:
		d.add("standbys", isRisky, "this user may not see how they follow; grant it pg_monitor")
	case h.StandbyNames != "" && h.Synchronous == 0:
		d.add("standbys", isWrong, "synchronous_standby_names is %q and no such standby is connected: every commit waits", h.StandbyNames)
	case h.Synchronous > 0:
		d.add("standbys", isFine, "%d of %d are synchronous: a failover to one of them loses nothing that was acknowledged", h.Synchronous, h.Standbys)
	case h.Standbys > 0:
		d.add("standbys", isRisky, "%d follow asynchronously: a failover can lose acknowledged payments; set synchronous_standby_names", h.Standbys)
	default:
		d.add("standbys", isRisky, "none is connected: if this machine is lost, so is what its last backup lacks")
	}
}

func (d *doctor) examineSQLite(ctx context.Context, path string) error {
	if err := checkFile(path); err != nil {
		return err
	}
	h, err := sqlite.Diagnose(path)
	if err != nil {
		return err
	}
	if d.damaged = h.Damage != "" || h.Log != ""; h.Log != "" {
		d.addIf("file", true, isWrong, "", h.Log)
		return nil
	}
	d.addIf("file", d.damaged, isWrong, "its pages are whole", "it is damaged: "+h.Damage+"; put it aside and restore a backup")
	if h.Journal != "" {
		d.addIf("journal", h.Journal != "wal", isRisky, "a write-ahead log, as the server wants it",
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
		d.add("server", isFine, "none is using the file")
		return
	}
	d.add("server", isFine, "process %d is using the file", pid)
	d.examineFiles(pid)
}
