package books_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"till"
	"till/books"
	"till/store"
	"till/store/admin"
	"till/store/webhooks"
)

// The time within which a share of approvals came is as exact as its buckets.
func TestApprovalTime(t *testing.T) {
	t.Parallel()
	sum := func(bucket string, n int64) store.HourSum {
		return store.HourSum{Noun: store.SumApproval, A: "mtn_momo", B: bucket, Sum: store.Sum{N: n}}
	}
	for _, c := range []struct {
		name string
		sums []store.HourSum
		at   int64
		want time.Duration
		more bool
		ok   bool
	}{
		{"none", nil, 50, 0, false, false},
		{"another noun", []store.HourSum{{Noun: store.SumIn, B: "XAF", Sum: store.Sum{N: 9}}}, 50, 0, false, false},
		{"one", []store.HourSum{sum("5", 1)}, 50, 5 * time.Second, false, true},
		{"the middle of a bucket", []store.HourSum{sum("20", 10)}, 50, 15 * time.Second, false, true},
		{"two methods", []store.HourSum{sum("5", 4), sum("5", 4), sum("60", 2)}, 90, 45 * time.Second, false, true},
		{"beyond the last", []store.HourSum{sum("5", 1), sum("more", 9)}, 90, 300 * time.Second, true, true},
	} {
		if d, more, ok := books.ApprovalTime(c.sums, c.at); d != c.want || more != c.more || ok != c.ok {
			t.Errorf("%s: %v %t %t, want %v %t %t", c.name, d, more, ok, c.want, c.more, c.ok)
		}
	}
}

// Every trouble is found alone, with its severity, and the guide's table has it; live money
// only is trouble.
func TestTroubles(t *testing.T) {
	t.Parallel()
	now := till.TimeOf(time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC))
	sound, old := &admin.Verification{At: now}, now.Add(-9*24*time.Hour)
	live := func(p books.Part) books.Status { return books.Status{At: now, Live: p} }
	fresh := &admin.BackupResult{EndedAt: now}
	saved := func(backup, drill *admin.BackupResult) books.Status {
		return books.Status{At: now, Live: books.Part{Clients: 1}, Verified: sound, Made: old, Backups: map[admin.BackupKind]*admin.BackupResult{admin.KindBackup: backup, admin.KindDrill: drill}}
	}
	tells := func(codes ...string) (s books.Status) {
		s.At = now
		for _, code := range codes {
			s.Instances = append(s.Instances, &admin.Instance{SeenAt: now, Troubles: code})
		}
		return s
	}
	money := books.Part{Clients: 1, Operators: []*books.OperatorStatus{{State: admin.Stopped, Case: "no"}}, Open: []store.OpenByAge{{N: 1, Hour: 1, Day: 1}},
		Cases: []store.OpenKind{{Count: 1}}, Strays: []admin.StraySum{{Count: 1}}, Webhooks: webhooks.Backlog{Failing: 1}}
	killed := &admin.Instance{SeenAt: now.Add(-time.Minute)}
	found := map[books.TroubleName]bool{}
	guide, err := os.ReadFile("../docs/guide/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		s     books.Status
		want  books.TroubleName
		stops bool
	}{
		{"what test clients have is no trouble", books.Status{At: now, Test: money}, "", false},
		{"all is well", saved(fresh, fresh), "", false},
		{"a new installation", books.Status{At: now, Live: books.Part{Clients: 1}, Verified: sound, Made: now, Backups: map[admin.BackupKind]*admin.BackupResult{admin.KindBackup: {}}}, "", false},
		{"an instance that was replaced", books.Status{At: now, Instances: []*admin.Instance{killed, {StartedAt: now, SeenAt: now}}}, "", false},
		{"a suspended client without payouts", books.Status{At: now, Holds: []store.Hold{{Client: till.NewID(1), Cause: store.HoldSuspended}}}, "", false},
		{"a full disk", books.Status{At: now, DiskSize: 1e9, DiskFree: 1e6}, books.TroubleDisk, true},
		{"an instance finds its disk full", tells(books.TellsDiskFull), books.TroubleDisk, true},
		{"a journal that creates wait for fails", tells("certificate_later," + books.TellsJournalStops), books.TroubleJournal, true},
		{"a journal fails", tells(books.TellsJournal), books.TroubleJournal, false},
		{"a certificate has ended", tells(books.TellsCertificate, books.TellsCertificateEnded), books.TroubleCertificate, true},
		{"a certificate ends", tells(books.TellsCertificate), books.TroubleCertificate, false},
		{"an instance that was killed has told", books.Status{At: now, Instances: []*admin.Instance{{SeenAt: now.Add(-time.Minute), Troubles: books.TellsJournal}, {StartedAt: now, SeenAt: now}}}, "", false},
		{"an instance was killed", books.Status{At: now, Instances: []*admin.Instance{killed}}, books.TroubleInstances, false},
		{"two releases", books.Status{At: now, Instances: []*admin.Instance{{SeenAt: now, Version: "1"}, {SeenAt: now, Version: "2"}}}, books.TroubleVersions, false},
		{"a restore", books.Status{At: now, Restores: []*admin.Restore{{At: now}}}, books.TroubleRestored, true},
		{"all payouts are held", books.Status{At: now, Holds: []store.Hold{{Client: store.EveryClient}}}, books.TroubleHeld, true},
		{"a client's payouts are held", books.Status{At: now, Holds: []store.Hold{{Client: till.NewID(1)}}}, books.TroubleHeld, false},
		{"the books are wrong", books.Status{At: now, Verified: &admin.Verification{At: now, Problems: 1}}, books.TroubleVerify, true},
		{"a stray", live(books.Part{Strays: money.Strays}), books.TroubleStrays, true},
		{"an operator is stopped", live(books.Part{Operators: money.Operators}), books.TroubleOperator, false},
		{"what an account may do was read", books.Status{At: now, Markets: []admin.ConnectionMarkets{{ReadAt: now.Add(-24 * time.Hour)}, {ReadAt: now.Add(-23 * time.Hour), FailingSince: now.Add(-22 * time.Hour)}}}, "", false},
		{"what an account may do is old", books.Status{At: now, Markets: []admin.ConnectionMarkets{{ReadAt: now}, {ReadAt: now.Add(-25 * time.Hour)}}}, books.TroubleMarkets, false},
		{"what an account may do was never read", books.Status{At: now, Markets: []admin.ConnectionMarkets{{FailingSince: now.Add(-25 * time.Hour)}}}, books.TroubleMarkets, false},
		{"what an account may do was not read yet", books.Status{At: now, Markets: []admin.ConnectionMarkets{{FailingSince: now.Add(-23 * time.Hour)}}}, "", false},
		{"something waits", live(books.Part{Open: money.Open}), books.TroubleOpen, false},
		{"a case", live(books.Part{Cases: money.Cases}), books.TroubleCases, false},
		{"a webhook fails", live(books.Part{Webhooks: money.Webhooks}), books.TroubleWebhooks, false},
		{"nobody proved live books", live(books.Part{Clients: 1}), books.TroubleUnproven, false},
		{"an old backup", saved(&admin.BackupResult{EndedAt: old}, fresh), books.TroubleBackup, false},
		{"never a backup", saved(&admin.BackupResult{}, fresh), books.TroubleBackup, false},
		{"a backup failed", saved(&admin.BackupResult{EndedAt: now, FailedAt: now}, fresh), books.TroubleBackup, false},
		{"an old drill", saved(fresh, &admin.BackupResult{EndedAt: old}), books.TroubleDrill, false},
		{"no archive", books.Status{At: now, Live: books.Part{Clients: 1}, Verified: sound, Shared: true}, books.TroubleArchive, false},
	} {
		got := c.s.Troubles()
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].Name != c.want || got[0].Stops != c.stops) {
			t.Errorf("%s: %v, want %q", c.name, got, c.want)
		}
		found[c.want] = true
		exit := map[bool]string{true: "`wrong`", false: "`warning`"}[c.stops]
		if row := "| `" + string(c.want) + "` | "; c.want != "" && !regexp.MustCompile(regexp.QuoteMeta(row)+`[^\n]*`+exit).Match(guide) {
			t.Errorf("the guide has no row %q with %s", row, exit)
		}
	}
	for _, name := range books.TroubleNames() {
		if !found[name] {
			t.Errorf("no test finds %q", name)
		}
	}
}
