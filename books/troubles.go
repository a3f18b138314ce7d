package books

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"till"
	"till/store"
	"till/store/admin"
)

// Limits of what is well. A disk with less free than the hundredth part is as good as full.
// Backups, drills and archives have some time for a run that is late. So many events, at 50
// per second, take minutes.
const (
	minDiskShare  = 0.01
	verifyEvery   = 7 * 24 * time.Hour
	ManyEvents    = 10_000
	MaxBackupAge  = 26 * time.Hour
	MaxDrillAge   = 8 * 24 * time.Hour
	MaxArchiveAge = 26 * time.Hour
)

// What an instance reports about itself in its row, because nobody else can see it.
const (
	TellsDiskFull         = "disk"
	TellsJournalStops     = "journal_stops" // it fails, and creates wait for it
	TellsJournal          = "journal"       // it fails, and creates do not wait
	TellsCertificateEnded = "certificate_ended"
	TellsCertificate      = "certificate" // it ends soon
)

// Texts of troubles that /readyz says, too.
const (
	DiskFullText     = "the disk of the database is full: payments are refused"
	JournalStopsText = "the journal cannot be written, and creates wait for it"
)

// TroubleName names a reason why a person has to act.
type TroubleName string

// The troubles. Test money is in none of them.
const (
	TroubleDisk        TroubleName = "disk"        // the disk of the database is full
	TroubleJournal     TroubleName = "journal"     // an instance cannot write its journal
	TroubleCertificate TroubleName = "certificate" // the one that an instance serves ends, or has ended
	TroubleInstances   TroubleName = "instances"   // one was killed, or cannot write any more
	TroubleVersions    TroubleName = "versions"    // two releases run side by side
	TroubleRestored    TroubleName = "restored"    // an old database was put back, and is not released
	TroubleHeld        TroubleName = "held"        // payouts are held
	TroubleVerify      TroubleName = "verify"      // the last verification found something
	TroubleStrays      TroubleName = "strays"      // money names us and nobody has it
	TroubleOperator    TroubleName = "operator"    // a connection is stopped, or refuses our credentials
	TroubleMarkets     TroubleName = "markets"     // an operator has not said for a day what an account may do
	TroubleOpen        TroubleName = "open"        // something waits for an operator's word for more than an hour
	TroubleCases       TroubleName = "cases"
	TroubleWebhooks    TroubleName = "webhooks" // endpoints fail or were disabled, or events wait in thousands
	TroubleUnproven    TroubleName = "unproven" // no verification in a week
	TroubleBackup      TroubleName = "backup"   // SQLite: the last one is old, or failed
	TroubleDrill       TroubleName = "drill"
	TroubleArchive     TroubleName = "archive" // PostgreSQL does not archive its log
)

// Trouble is a reason why a person has to act.
type Trouble struct {
	Name  TroubleName
	Stops bool   // money is stopped, or may be lost: wake somebody; the others wait until the morning
	Text  string // no secret, no name of a client, no phone number
}

// judges say of each trouble whether it is there: by its text, "" if it is not.
var judges = []struct {
	name  TroubleName
	stops bool
	judge func(s *Status) string
}{
	{TroubleDisk, true, diskTrouble},
	{TroubleJournal, true, told(TellsJournalStops, "", JournalStopsText)},
	{TroubleJournal, false, told(TellsJournal, TellsJournalStops, "the journal cannot be written: payments are taken and are not in it")},
	{TroubleCertificate, true, told(TellsCertificateEnded, "", "the certificate is not valid, or there is none yet: clients refuse to connect")},
	{TroubleCertificate, false, told(TellsCertificate, TellsCertificateEnded, "the certificate ends within a week, and nobody has renewed it")},
	{TroubleInstances, false, instanceTrouble},
	{TroubleVersions, false, versionTrouble},
	{TroubleRestored, true, restoreTrouble},
	{TroubleHeld, true, allHeldTrouble},
	{TroubleHeld, false, someHeldTrouble},
	{TroubleVerify, true, verifyTrouble},
	{TroubleStrays, true, strayTrouble},
	{TroubleOperator, false, operatorTrouble},
	{TroubleMarkets, false, marketTrouble},
	{TroubleOpen, false, openTrouble},
	{TroubleCases, false, caseTrouble},
	{TroubleWebhooks, false, webhookTrouble},
	{TroubleUnproven, false, unprovenTrouble},
	{TroubleBackup, false, func(s *Status) string { return s.backupTrouble(admin.KindBackup, MaxBackupAge) }},
	{TroubleDrill, false, func(s *Status) string { return s.backupTrouble(admin.KindDrill, MaxDrillAge) }},
	{TroubleArchive, false, archiveTrouble},
}

// TroubleNames returns all of them.
func TroubleNames() (out []TroubleName) {
	for _, j := range judges {
		out = append(out, j.name)
	}
	return slices.Compact(out)
}

// Troubles decides what is wrong, for everything that says so: the commands, the console and
// the metrics. None means that all is well.
func (s *Status) Troubles() (out []Trouble) {
	for _, j := range judges {
		if text := j.judge(s); text != "" {
			out = append(out, Trouble{j.name, j.stops, text})
		}
	}
	return out
}

// told returns a judge of what running instances report: its text if one reports a code and
// none reports what is worse.
func told(code, worse, text string) func(*Status) string {
	return func(s *Status) string {
		if s.tells(code) && !s.tells(worse) {
			return text
		}
		return ""
	}
}

func (s *Status) tells(code string) bool {
	return code != "" && slices.ContainsFunc(s.Instances, func(i *admin.Instance) bool { return i.Running(s.At) && i.Tells(code) })
}

// DiskFull reports whether a disk is as good as full. One whose size is not known is not.
func DiskFull(size, free int64) bool {
	return size > 0 && float64(free) < minDiskShare*float64(size)
}

func diskTrouble(s *Status) string {
	if DiskFull(s.DiskSize, s.DiskFree) || s.tells(TellsDiskFull) {
		return DiskFullText
	}
	return ""
}

// instanceTrouble finds instances that ended without a word, or cannot write any more. One
// that was started since has taken the place of those that were gone before.
func instanceTrouble(s *Status) string {
	silent := 0
	for _, i := range s.Instances {
		replaced := slices.ContainsFunc(s.Instances, func(o *admin.Instance) bool { return o.StartedAt >= i.SeenAt })
		if !i.Running(s.At) && !replaced {
			silent++
		}
	}
	if silent == 0 {
		return ""
	}
	return till.Count(int64(silent), "instance has", "instances have") + " written nothing for half a minute, and did not stop in order: it was killed, or the database takes no writes"
}

func versionTrouble(s *Status) string {
	versions := map[string]bool{}
	for _, i := range s.Instances {
		if i.Running(s.At) {
			versions[i.Version] = true
		}
	}
	if len(versions) < 2 {
		return ""
	}
	return fmt.Sprintf("%d releases run side by side; end the upgrade, or roll it back", len(versions))
}

func restoreTrouble(s *Status) string {
	if len(s.Restores) == 0 {
		return ""
	}
	return fmt.Sprintf("an old database was put back at %s and is not released: payouts are held; see 'till restored --show'", s.Restores[0].At)
}

// AllHeld reports whether the payouts of all clients are held.
func (s *Status) AllHeld() bool {
	return slices.ContainsFunc(s.Holds, func(h store.Hold) bool { return h.Client == store.EveryClient })
}

func allHeldTrouble(s *Status) string {
	if !s.AllHeld() {
		return ""
	}
	return "the payouts of all clients are held; see 'till payouts held'"
}

// someHeldTrouble is silent while those of all clients are held. It leaves out clients that
// are suspended, unless payouts wait.
func someHeldTrouble(s *Status) string {
	held := 0
	if s.AllHeld() {
		return ""
	}
	for _, h := range s.Holds {
		if h.Client != store.EveryClient && (h.Cause != store.HoldSuspended || s.Waiting > 0) {
			held++
		}
	}
	if held == 0 {
		return ""
	}
	return fmt.Sprintf("payouts are held by %s, and %s; see 'till payouts held'", till.Count(int64(held), "hold of a client", "holds of clients"), till.Count(int64(s.Waiting), "waits", "wait"))
}

func verifyTrouble(s *Status) string {
	if s.Verified == nil || s.Verified.Problems == 0 {
		return ""
	}
	return fmt.Sprintf("the verification of %s found %s; see 'till verify'", s.Verified.At, till.Count(s.Verified.Problems, "problem", "problems"))
}

func strayTrouble(s *Status) string {
	n := s.Live.OpenStrays()
	if n == 0 {
		return ""
	}
	return till.Count(n, "stray is open", "strays are open") + ": money that names us and that nobody has; see 'till strays'"
}

func operatorTrouble(s *Status) string {
	var bad []string
	for _, o := range s.Live.Operators {
		if o.State != admin.Passing || o.Case != "" {
			bad = append(bad, strings.TrimSuffix(o.name()+": "+string(o.State)+"; "+o.Case, "; "))
		}
	}
	return strings.Join(bad, ", ")
}

// marketTrouble finds operators that nobody could ask for a day, or whose answer cannot be. What
// they said before holds meanwhile.
func marketTrouble(s *Status) string {
	var old []string
	for i := range s.Markets {
		if m := &s.Markets[i]; m.Old(s.At) {
			old = append(old, m.Connection)
		}
	}
	if len(old) == 0 {
		return ""
	}
	return "for a day nobody could read what these accounts may do: " + strings.Join(old, ", ") + "; where their operators said something before, that still holds; see 'till doctor'"
}

func openTrouble(s *Status) string {
	var n int64
	for _, o := range s.Live.Open {
		n += o.Hour
	}
	if n == 0 {
		return ""
	}
	return till.Count(n, "payment or payout waits", "payments and payouts wait") + " for an operator's word for more than an hour"
}

func caseTrouble(s *Status) string {
	var n int64
	for _, c := range s.Live.Cases {
		n += c.Count
	}
	if n == 0 {
		return ""
	}
	return till.Count(n, "case is open", "cases are open") + "; see 'till cases'"
}

func webhookTrouble(s *Status) string {
	w := &s.Live.Webhooks
	if w.Failing+w.Disabled == 0 && w.Behind+w.Retries < ManyEvents {
		return ""
	}
	return fmt.Sprintf("nothing reaches %s, %d more were disabled, and %s", till.Count(w.Failing, "endpoint", "endpoints"), w.Disabled, till.Count(w.Behind+w.Retries, "event waits", "events wait"))
}

func unprovenTrouble(s *Status) string {
	if s.Live.Clients == 0 || s.Verified != nil && s.At.Sub(s.Verified.At) <= verifyEvery {
		return ""
	}
	return "nobody has verified the books in a week; run 'till verify'"
}

// backupTrouble judges the last backup or drill of an installation with live clients. A new
// one has some time until its first.
func (s *Status) backupTrouble(kind admin.BackupKind, most time.Duration) string {
	r := s.Backups[kind]
	if r == nil || s.Made.IsZero() || s.Live.Clients == 0 {
		return ""
	}
	since := r.EndedAt
	if since.IsZero() {
		since = s.Made
	}
	switch {
	case !r.FailedAt.IsZero():
		return fmt.Sprintf("the last %s failed at %s: %s", kind, r.FailedAt, r.Problem)
	case s.At.Sub(since) > most:
		return fmt.Sprintf("there was no good %s since %s", kind, since)
	}
	return ""
}

func archiveTrouble(s *Status) string {
	switch {
	case !s.Shared || s.Live.Clients == 0:
		return ""
	case s.ArchiveFailed > s.Archived:
		return fmt.Sprintf("PostgreSQL has failed to archive its log since %s", s.ArchiveFailed)
	case s.At.Sub(s.Archived) > MaxArchiveAge:
		return "PostgreSQL has archived nothing of its log for a day"
	}
	return ""
}
