package books_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/books"
	"till/recovery"
	"till/store"
	"till/store/admin"
	"till/store/auditlog"
	"till/store/storetest"
)

// oldSeal is the formula from before there was a key.
func oldSeal(before [32]byte, a *store.AuditRow) [32]byte {
	var b bytes.Buffer
	number := func(n int64) { binary.Write(&b, binary.BigEndian, n) }
	texts := func(texts ...string) {
		for _, text := range texts {
			number(int64(len(text)))
			b.WriteString(text)
		}
	}
	b.Write(before[:])
	b.Write(a.ClientID[:])
	number(a.Sequence)
	number(int64(a.At))
	b.Write(a.SubjectID[:])
	texts(a.Actor, a.Action, a.Detail)
	if a.Cause != "" || len(a.Evidence) > 0 {
		texts(a.Cause, string(a.Evidence))
	}
	return sha256.Sum256(b.Bytes())
}

// sealOld seals a client's audit log as the release before did, one link for
// every n rows.
func sealOld(t *testing.T, raw execer, s *store.Store, client till.ID, n int64) {
	t.Helper()
	var link [32]byte
	var covers int64
	rows := auditRows(t, s, client, books.AuditFilter{})
	for _, a := range rows {
		link, covers = oldSeal(link, a), covers+1
		if covers == n || a.Sequence == int64(len(rows)) {
			raw(t, fmt.Sprintf(`INSERT INTO audit_chain (client_id, sequence, covers, hash) VALUES (x'%x', %d, %d, x'%x')`, client[:], a.Sequence, covers, link[:]))
			covers = 0
		}
	}
}

type execer func(t *testing.T, sql string)

// newRaw opens a SQLite store and a way around it.
func newRaw(t *testing.T) (*store.Store, execer) {
	path := t.TempDir() + "/till.db"
	s := storetest.Open(t, store.Config{Path: path})
	db := storetest.OpenRaw(t, path)
	return s, func(t *testing.T, sql string) { t.Helper(); storetest.Exec(t, db, sql) }
}

func details(problems []books.Problem) (out []string) {
	for _, p := range problems {
		out = append(out, p.Detail)
	}
	return out
}

// A log that an earlier release has sealed without a key goes on under it, and
// from then on its old links cannot be made anew either.
func TestAnOldChainGoesOnUnderTheKey(t *testing.T) {
	t.Parallel()
	s, raw := newRaw(t)
	client := storetest.NewClient(t, s, till.Test)
	addAudit(t, s, client.ID, 6)
	c := storetest.NewCollector(t, s)
	storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded) // with cause and evidence
	sealOld(t, raw, s, client.ID, 3)
	if r := verify(t, s, books.Options{Slice: 2}); !r.Clean() || r.ChainLinks != 7 {
		t.Fatalf("before the first keyed link: %d seals, %+v", r.ChainLinks, r.Problems)
	}
	addAudit(t, s, client.ID, 2)
	if n, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil || n != 2 {
		t.Fatalf("sealed %d, %v", n, err)
	}
	if got := covered(seals(t, s, client.ID)); !slices.Equal(got, []int64{0, 2}) {
		t.Errorf("the links cover %v", got)
	}
	// The release before may still be running beside, and goes on with its links.
	raw(t, `INSERT INTO audit_chain (client_id, sequence, covers, hash) SELECT client_id, 9, 2, hash FROM audit_chain WHERE sequence = 7`)
	for _, slice := range []int{1, 2, 100} {
		if r := verify(t, s, books.Options{Slice: slice}); !r.Clean() || r.ChainLinks != 9 {
			t.Errorf("slice %d: %d seals, %+v", slice, r.ChainLinks, r.Problems)
		}
	}
	// Who has only the database can make all plain links anew.
	raw(t, `DROP TRIGGER audit_update`)
	raw(t, `UPDATE audit SET actor = 'Eve' WHERE sequence = 2`)
	raw(t, `DELETE FROM audit_chain`)
	if r := verify(t, s, books.Options{}); !slices.Contains(details(r.Problems), "the audit chain has a gap before 7") {
		t.Errorf("plain links that are gone: %q", details(r.Problems))
	}
	sealOld(t, raw, s, client.ID, 7)
	for _, slice := range []int{1, 100} {
		if got := details(verify(t, s, books.Options{Slice: slice}).Problems); !slices.Equal(got, []string{"an audit row up to 7 is not the one that was sealed"}) {
			t.Errorf("slice %d: plain links that were made anew: %q", slice, got)
		}
	}
}

// Without the key nobody makes a link, whatever they know of how it is made.
func TestTheAuditChainNeedsTheInstallationsKey(t *testing.T) {
	t.Parallel()
	s, raw := newRaw(t)
	client := storetest.NewClient(t, s, till.Test)
	addAudit(t, s, client.ID, 5)
	if _, err := books.ExtendChains(t.Context(), s, nil); err == nil {
		t.Fatal("sealed without a key")
	}
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	raw(t, `DROP TRIGGER audit_update`)
	raw(t, `UPDATE audit SET actor = 'Eve' WHERE sequence = 2`)
	for name, key := range map[string]auditlog.ChainKey{"no": {}, "another": []byte("another")} {
		var link auditlog.ChainLink
		for _, a := range auditRows(t, s, client.ID, books.AuditFilter{}) {
			if link = key.NextLink(link, a); name == "no" {
				link.Hash = oldSeal(link.Hash, a)
			}
		}
		raw(t, fmt.Sprintf(`UPDATE audit_seals SET hash = x'%x'`, link.Hash[:]))
		if r := verify(t, s, books.Options{}); len(r.Problems) != 1 {
			t.Errorf("links made with %s key: %q", name, details(r.Problems))
		}
	}
	if a, err := books.ChainKey([]byte("one secret of an installation")); err != nil || bytes.Contains(a, []byte("secret")) || len(a) != 32 {
		t.Errorf("the key is %q, %v", a, err)
	}
}

// Every part of a row is sealed, also one that a later release adds.
func TestASealCoversTheWholeRow(t *testing.T) {
	t.Parallel()
	row := store.AuditRow{}
	hash := func(a store.AuditRow) [32]byte { return storetest.ChainKey.NextLink(auditlog.ChainLink{}, &a).Hash }
	seen := map[[32]byte]string{hash(row): "nothing"}
	note := func(what string, a store.AuditRow) {
		if other, found := seen[hash(a)]; found {
			t.Errorf("a row with %s has the seal of one with %s", what, other)
		}
		seen[hash(a)] = what
	}
	all := row
	for i := range reflect.TypeOf(row).NumField() {
		a := row
		for _, f := range []reflect.Value{reflect.ValueOf(&a).Elem().Field(i), reflect.ValueOf(&all).Elem().Field(i)} {
			switch f.Interface().(type) {
			case string:
				f.SetString("x") // in every column the same, so that one cannot be moved to another
			case []byte:
				f.SetBytes([]byte("x"))
			case int64, till.Time:
				f.SetInt(1)
			case till.ID:
				f.Set(reflect.ValueOf(till.NewID(7)))
			default:
				t.Fatalf("a field of type %s", f.Type())
			}
		}
		note(reflect.TypeOf(row).Field(i).Name, a)
	}
	note("all", all)
}

// heads returns the heads of all chains.
func heads(t *testing.T, s *store.Store) (out []books.AuditHead) {
	t.Helper()
	if err := books.EachHead(t.Context(), s, func(h books.AuditHead) bool { out = append(out, h); return true }); err != nil {
		t.Fatal(err)
	}
	return out
}

// rewrite gives a client another audit log of n rows with a chain that fits.
func rewrite(t *testing.T, s *store.Store, raw execer, client till.ID, n int) {
	t.Helper()
	for _, table := range []string{"audit", "audit_seals"} {
		raw(t, fmt.Sprintf(`DELETE FROM %s WHERE client_id = x'%x'`, table, client[:]))
	}
	raw(t, fmt.Sprintf(`UPDATE client_heads SET last_audit = 0 WHERE client_id = x'%x'`, client[:]))
	addAudit(t, s, client, n)
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
}

// Who has the database and the service that seals for them can make the chain
// anew. What somebody kept of it tells.
func TestARewrittenChainIsFoundByAHeadThatWasKept(t *testing.T) {
	t.Parallel()
	s, raw := newRaw(t)
	raw(t, `DROP TRIGGER audit_delete`)
	a, b, idle := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Live), storetest.NewClient(t, s, till.Live)
	addAudit(t, s, a.ID, 5)
	addAudit(t, s, b.ID, 7)
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	log := slog.New(slog.NewJSONHandler(&text, nil))
	told := books.NewLoggedHeads()
	if err := books.LogHeads(t.Context(), s, log, told); err != nil {
		t.Fatal(err)
	}
	kept := heads(t, s)
	if got := books.FindHeads(text.String()); len(kept) != 2 || !slices.Equal(got, kept) {
		t.Fatalf("the log tells %v, want %v", got, kept)
	}
	addAudit(t, s, a.ID, 3)
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	text.Reset()
	if err := books.LogHeads(t.Context(), s, log, told); err != nil {
		t.Fatal(err)
	}
	if got := books.FindHeads(text.String()); len(got) != 1 || got[0].Client != a.ID || got[0].Sequence != 8 {
		t.Errorf("the log tells %v the second time", got)
	}
	for _, slice := range []int{1, 100} {
		if r := verify(t, s, books.Options{Slice: slice, Heads: append(kept, kept...)}); !r.Clean() || r.Heads != 2 {
			t.Fatalf("%d heads, %q", r.Heads, details(r.Problems))
		}
	}

	rewrite(t, s, raw, b.ID, 7)
	if r := verify(t, s, books.Options{}); !r.Clean() {
		t.Fatalf("the rewritten chain does not fit: %q", details(r.Problems))
	}
	foreign := books.AuditHead{Client: till.NewID(1), Sequence: 1}
	for want, head := range map[string]books.AuditHead{
		"the audit chain has another link at 7 than the head that was kept: the log was rewritten, or an older database was put back": kept[1],
		"the audit chain ends at 7, and the head that was kept is of 9: the log was rewritten, or an older database was put back":     {Client: b.ID, Sequence: 9},
		"the audit chain ends at 0, and the head that was kept is of 1: the log was rewritten, or an older database was put back":     {Client: idle.ID, Sequence: 1},
		"the client whose head was kept is not here: it was removed, or a database from before it was put back":                       foreign,
	} {
		if r := verify(t, s, books.Options{Heads: []books.AuditHead{head}}); !slices.Equal(details(r.Problems), []string{want}) || r.Problems[0].Client != head.Client {
			t.Errorf("got %q, want %q", details(r.Problems), want)
		}
	}
	text.Reset()
	if err := books.LogHeads(t.Context(), s, log, told); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), `"level":"ERROR"`) || !strings.Contains(text.String(), kept[1].String()) {
		t.Errorf("what was told is gone, and the log says %s", &text)
	}
	if _, err := books.Verify(t.Context(), s, books.Options{Heads: kept}); err == nil {
		t.Error("heads were compared without the key")
	}
}

// After a restore a head from the lost time cannot be found: the log itself
// says why.
func TestAHeadOfTheLostTimeIsExplainedByTheRestore(t *testing.T) {
	t.Parallel()
	s, raw := newRaw(t)
	raw(t, `DROP TRIGGER audit_delete`)
	client := storetest.NewClient(t, s, till.Test)
	addAudit(t, s, client.ID, 9)
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	kept := heads(t, s)
	rewrite(t, s, raw, client.ID, 4) // as the backup had it
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		return admin.InsertInstallation(t.Context(), tx, &admin.Installation{LogID: till.NewID(1), SecretCheck: make([]byte, 32), CreatedAt: tx.Now()})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recovery.MarkRestored(t.Context(), s, recovery.RestoreRequest{Secret: make([]byte, 32), LostFrom: s.Now(), By: "Awa"}); err != nil {
		t.Fatal(err)
	}
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	const want = "the audit chain ends at 5, and the head that was kept is of 9: row 5 says that an older database was put back, by which a head from the lost time is lost; " +
		"if this one is from another time, the log was rewritten"
	if got := details(verify(t, s, books.Options{Heads: kept}).Problems); !slices.Equal(got, []string{want}) {
		t.Errorf("got %q", got)
	}
}

// Two instances that meet an old chain at once go on from the same link of it,
// although an older release still makes it longer.
func TestTwoWhoGoOnFromAnOldChainBuildOne(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Config(t)
			s := storetest.Open(t, config)
			raw := func(t *testing.T, sql string) { t.Helper(); storetest.Raw(t, config.Path, sql) }
			clients := make([]till.ID, 10)
			for i := range clients {
				clients[i] = storetest.NewClient(t, s, till.Test).ID
				addAudit(t, s, clients[i], 4)
				sealOld(t, raw, s, clients[i], 3)
				addAudit(t, s, clients[i], 2)
			}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for _, client := range clients {
				if got := covered(seals(t, s, client)); !slices.Equal(got, []int64{0, 2}) {
					t.Errorf("the links cover %v", got)
				}
			}
			if r := verify(t, s, books.Options{Slice: 3}); !r.Clean() || r.ChainLinks != 60 {
				t.Errorf("%d rows are sealed, %q", r.ChainLinks, details(r.Problems))
			}
		})
	}
}

// The log is told a minute after the start, and then once an hour.
func TestRunHeadsTellsTheLogOnceAnHour(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{Path: dir + "/till.db"})
		client := storetest.NewClient(t, s, till.Test)
		var text strings.Builder
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { books.RunHeads(ctx, s, slog.New(slog.NewTextHandler(&text, nil))); close(stopped) }()
		for i, wait := range []time.Duration{59 * time.Second, 2 * time.Second, 67 * time.Minute, 67 * time.Minute} {
			if i != 3 { // the last time nothing has changed
				addAudit(t, s, client.ID, 1)
				if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(wait)
			synctest.Wait()
			if got := books.FindHeads(text.String()); len(got) != min(i, 2) {
				t.Errorf("after step %d the log tells %v", i, got)
			}
		}
		cancel()
		<-stopped
	})
}
