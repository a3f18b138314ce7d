package storetest

import (
	"fmt"
	"testing"
	"time"

	"till"
	"till/books"
	"till/store"
	"till/store/admin"
)

// Cause brings a trouble about.
type Cause struct {
	Name books.TroubleName
	Says string   // in the words of the trouble
	Rows []string // in SQLite's words, after those of the causes before
}

// WaitingPayments is how many payments the cause of the trouble open adds.
const WaitingPayments = 75

// Causes returns a cause of each trouble that an engine knows, by rows. That of an archive
// comes with the first live client: tests have none.
func Causes(tb testing.TB, database string) (all []Cause) {
	tb.Helper()
	now := till.TimeOf(time.Now())
	at := func(d time.Duration) int64 { return int64(now.Add(d)) }
	client := id(till.NewID(now))
	instance := func(version, troubles string, seen time.Duration) string {
		return fmt.Sprintf(`INSERT INTO instances (id, version, level, role, started_at, seen_at, troubles) VALUES (%s, '%s', %d, 'all', %d, %d, '%s')`,
			id(till.NewID(now)), version, admin.Level, at(-time.Hour), at(seen), troubles)
	}
	failed := func(kind admin.BackupKind) string {
		return fmt.Sprintf(`INSERT INTO backup_results (kind, ended_at, taken_at, place, bytes, took_ms, failed_at, problem) VALUES ('%s', 0, 0, '', 0, 0, %d, 'no room')`, kind, at(0))
	}
	var open []string
	for range WaitingPayments {
		open = append(open, fmt.Sprintf(`INSERT INTO steps (client_id, subject_id, kind, due_at) VALUES (%s, %s, 'payment', %d)`, client, id(till.NewID(now.Add(-2*time.Hour))), at(24*time.Hour)))
	}
	all = []Cause{
		{books.TroubleUnproven, "nobody has verified", []string{
			fmt.Sprintf(`INSERT INTO clients (client_id, name, mode, created_at) VALUES (%s, 'A', 'live', %d)`, client, at(0)),
			fmt.Sprintf(`INSERT INTO client_heads (client_id, last_time, last_event, last_audit) VALUES (%s, 0, 0, 0)`, client),
		}},
		{books.TroubleDisk, books.DiskFullText, []string{instance("", books.TellsDiskFull, time.Hour)}},
		{books.TroubleJournal, books.JournalStopsText, []string{instance("", books.TellsJournalStops, time.Hour)}},
		{books.TroubleCertificate, "certificate", []string{instance("", books.TellsCertificate, time.Hour)}},
		{books.TroubleInstances, "it was killed", []string{fmt.Sprintf(`UPDATE instances SET started_at = %d`, at(-time.Hour)), instance("", "", -2*time.Minute)}},
		{books.TroubleVersions, "2 releases", []string{instance("v2", "", time.Hour)}},
		{books.TroubleRestored, "an old database", []string{fmt.Sprintf(`INSERT INTO restores (restored_at, lost_from, restored_by, log_id) VALUES (%d, %d, 'A', %s)`, at(0), at(-time.Hour), client)}},
		{books.TroubleHeld, "payouts of all clients", []string{fmt.Sprintf(`INSERT INTO payout_holds (cause, client_id, held_at, held_by, reason) VALUES ('%s', %s, %d, 'A', 'why')`, store.HoldPerson, id(store.EveryClient), at(0))}},
		{books.TroubleStrays, "1 stray is open", []string{fmt.Sprintf(`INSERT INTO strays (connection, name, id, direction, source, seen_at, claimed, standing) VALUES ('mtn', 'r1', %s, 'in', 'statement', %d, '', 1)`, client, at(0))}},
		{books.TroubleOperator, "refuses us", []string{fmt.Sprintf(`INSERT INTO operator_cases (connection, kind, detail, opened_at) VALUES ('mtn', 'credentials', 'it refuses us', %d)`, at(0))}},
		{books.TroubleMarkets, "nobody could read what these accounts may do: pawapay", []string{fmt.Sprintf(`INSERT INTO connection_markets (connection, account, read_at, tried_at, failing_since, problem, markets) VALUES ('pawapay', '', %d, %d, %d, 'no answer', '')`, at(-26*time.Hour), at(0), at(-25*time.Hour))}},
		{books.TroubleOpen, "75 payments and payouts", open},
		{books.TroubleCases, "1 case is open", []string{fmt.Sprintf(`INSERT INTO cases (client_id, id, subject_id, kind, detail, opened_at) VALUES (%s, %s, %s, 'overdue', 'why', %d)`, client, client, client, at(0))}},
		{books.TroubleWebhooks, "1 more were disabled", []string{fmt.Sprintf(`INSERT INTO webhook_endpoints (client_id, id, url, events, enabled, disabled_at, disabled_why, created_at, updated_at, secret, start_sequence, listed_from, cursor_sequence)
			VALUES (%s, %s, 'https://shop.example', '*', 0, %d, 'failing', 1, 1, x'00', 0, 0, 0)`, client, client, at(0))}},
		{books.TroubleVerify, "found 1 problem", []string{fmt.Sprintf(`INSERT INTO verifications (at, began_at, problems, audit_key) VALUES (%d, 1, 1, 1)`, at(0))}},
	}
	if store.IsPostgres(database) {
		return append(all, Cause{books.TroubleArchive, "archived", nil})
	}
	return append(all, Cause{books.TroubleBackup, "backup failed", []string{failed(admin.KindBackup)}}, Cause{books.TroubleDrill, "drill failed", []string{failed(admin.KindDrill)}})
}

func id(i till.ID) string { return fmt.Sprintf("x'%x'", i[:]) }
