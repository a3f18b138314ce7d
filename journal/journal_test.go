package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/store"
)

const installed = till.Time(1_700_000_000_000_000)

var secret = bytes.Repeat([]byte("s"), 32)

// newWriter opens a journal whose clock the test moves.
func newWriter(t *testing.T, c Config) (*Writer, *time.Time) {
	t.Helper()
	c.Secret, c.Installation = secret, installed
	w, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	w.now = func() time.Time { return now }
	t.Cleanup(func() { w.Close() })
	return w, &now
}

// entries returns new rows, the first of them number from.
func entries(from, n int) (out []engine.JournalEntry) {
	client := &till.Client{ID: till.ID{1}, Name: "Boulangerie \"Chez Awa\" <é>", Mode: till.Live}
	for i := from; i < from+n; i++ {
		at := installed.Add(time.Duration(i) * time.Second)
		out = append(out, engine.JournalEntry{Client: client, Row: store.Subject{
			Ref: store.Ref{Client: client.ID, ID: till.NewID(at)}, IdempotencyKey: strings.ToUpper(till.NewID(at).String()), BodyHash: [32]byte{byte(i)}, BodyVersion: 1,
			Method: "mtn_momo", Country: "CG", Amount: till.Money{Minor: int64(1000 + i), Currency: "XAF"}, Fee: 5, Phone: fmt.Sprintf("24206%07d", i),
			Reference: "order \u2028", Document: []byte("\"description\":\"pain\",\"x\":\"\xff\""), Connection: "mtn", Fingerprint: "f",
			CreatedAt: at, ExpiresAt: at.Add(time.Minute), Window: time.Minute,
		}})
	}
	return out
}

func read(t *testing.T, folder string) ([]*Record, *Report, error) {
	t.Helper()
	var out []*Record
	report, err := Read([]string{folder}, secret, installed, func(r *Record) error { out = append(out, r); return nil })
	return out, report, err
}

func phones(records []*Record) (out string) {
	for _, r := range records {
		out += r.Row.Phone[5:] + " "
	}
	return out
}

func files(t *testing.T, folder string) []string {
	t.Helper()
	out, err := segments(folder)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	t.Parallel()
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprint("sync ", sync), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "journal")
			w, _ := newWriter(t, Config{Folder: dir, Sync: sync})
			want := entries(0, 3)
			for _, kind := range []till.SubjectKind{till.SubjectPayment, till.SubjectPayout} {
				if sync {
					if err := w.Committing(kind, want); err != nil {
						t.Fatal(err)
					}
				}
				w.Committed(kind, want)
			}
			if !sync { // a look at the disk before the writer has had its turn
				if got, _, err := read(t, dir); len(got) != 0 || err != nil {
					t.Errorf("%d records, %v", len(got), err)
				}
			}
			w.flush()
			got, report, err := read(t, dir)
			if err != nil || len(got) != 6 || report.Records != 6 || len(report.Cut)+len(report.Damaged) > 0 {
				t.Fatalf("%d records, %+v, %v", len(got), report, err)
			}
			for i, r := range got {
				if w := want[i%3]; fmt.Sprintf("%+v", r.Row) != fmt.Sprintf("%+v", w.Row) || r.Client != *w.Client || (r.Kind == till.SubjectPayout) != (i >= 3) {
					t.Errorf("got  %+v\nwant %+v", r, w)
				}
			}
			p, o := got[0].Payment(), got[3].Payout()
			if p.Subject().IdempotencyKey != want[0].Row.IdempotencyKey || p.ApprovalWindow != time.Minute || o.SendWindow != time.Minute || o.Fee != 5 || p.BodyHash != o.BodyHash {
				t.Errorf("%+v\n%+v", p, o)
			}
			for _, f := range files(t, dir) {
				b, err := os.ReadFile(f)
				if err != nil || bytes.Contains(b, []byte("24206")) || bytes.Contains(b, []byte("Awa")) {
					t.Errorf("%v; a phone or a name can be read in %s", err, f)
				}
				if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("others can read it: %v, %v", info.Mode(), err)
				}
			}
		})
	}
}

// Whatever part of the end is missing, what came before it is read, and nothing that was
// not written. Whatever byte is altered, it is noticed, and all other records are read.
// A refund is read with its payment, the road it was made for and its reason. A release from
// before refunds, which knows two kinds, understands no record of one.
func TestARefundIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "journal")
	w, _ := newWriter(t, Config{Folder: dir, Sync: true})
	want := entries(0, 2)
	for i, road := range []till.Road{till.RoadTransfer, till.RoadRefund} {
		r := &want[i].Row
		r.Noun, r.PaymentID, r.Road, r.Reason = till.NounRefund, till.NewID(installed), road, "duplicate"
		text, err := encode(till.SubjectPayout, &want[i])
		if err != nil || !bytes.Contains(text, []byte(`"kind":"refund"`)) {
			t.Errorf("the record is %s, %v", text, err)
		}
		without := bytes.Replace(text, []byte(r.PaymentID.String()), nil, 1)
		if _, err := decode(without); !errors.Is(err, errRecord) {
			t.Errorf("a refund of no payment is read: %v", err)
		}
	}
	if err := w.Committing(till.SubjectPayout, want); err != nil {
		t.Fatal(err)
	}
	got, _, err := read(t, dir)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d records, %v", len(got), err)
	}
	for i, r := range got {
		p := r.Payout()
		if r.Kind != till.SubjectPayout || !p.IsRefund() || p.PaymentID != want[i].Row.PaymentID || p.Road != want[i].Row.Road || p.Reason != "duplicate" {
			t.Errorf("it is %+v, was %+v", p.Payout, want[i].Row)
		}
	}
}

func TestTornAndAlteredSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, _ := newWriter(t, Config{Folder: dir, Sync: true})
	for i := range 3 {
		if err := w.Committing(till.SubjectPayment, entries(i, 1)); err != nil {
			t.Fatal(err)
		}
	}
	path := files(t, dir)[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int // of the frames
	for at := headLength; at < len(whole); {
		at += frameHead + int(whole[at+len(mark)+6])<<8 + int(whole[at+len(mark)+7])
		ends = append(ends, at)
	}
	if len(ends) != 4 || ends[3] != len(whole) {
		t.Fatalf("frames end at %v of %d", ends, len(whole))
	}
	other := t.TempDir()
	put := func(b []byte) ([]*Record, *Report, error) {
		if err := os.WriteFile(filepath.Join(other, filepath.Base(path)), b, 0o600); err != nil {
			t.Fatal(err)
		}
		return read(t, other)
	}
	for n := 0; n < len(whole); n += stride(n, ends) {
		want := 0
		for _, end := range ends[1:] {
			if n >= end {
				want++
			}
		}
		cut := 1
		if n == ends[0] || n == ends[1] || n == ends[2] || n == headLength {
			cut = 0
		}
		for _, rest := range [][]byte{nil, make([]byte, 100)} { // the disk may have given it room
			got, report, err := put(append(bytes.Clone(whole[:n]), rest...))
			if rest != nil && n < headLength {
				continue // its first bytes are gone: it says that it is no journal
			}
			if err != nil || len(got) != want || len(report.Damaged) != 0 || rest == nil && len(report.Cut) != cut {
				t.Fatalf("cut off at %d and %d zeros: %d records, %+v, %v; want %d records", n, len(rest), len(got), report, err, want)
			}
		}
	}
	for n := headLength; n < len(whole); n += stride(n, ends) {
		b := bytes.Clone(whole)
		b[n] ^= 0x10
		got, report, err := put(b)
		if err != nil || len(report.Damaged)+len(report.Cut) != 1 || len(got) < 2 || n < ends[2] && len(report.Damaged) != 1 {
			t.Fatalf("altered at %d: %d records, %+v, %v", n, len(got), report, err)
		}
	}
	for name, b := range map[string][]byte{
		"a record is taken out":  append(bytes.Clone(whole[:ends[1]]), whole[ends[2]:]...),
		"two records are turned": slicesOf(whole[:ends[0]], whole[ends[1]:ends[2]], whole[ends[0]:ends[1]], whole[ends[2]:]),
	} {
		if _, report, err := put(b); err != nil || len(report.Damaged) == 0 {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
	for want, b := range map[string][]byte{
		"newer release":        append([]byte("till journal 2\n"), whole[len(magic):]...),
		"no journal":           append([]byte("something else "), whole[len(magic):]...),
		"another installation": append(append(bytes.Clone(whole[:len(magic)]), make([]byte, 16)...), whole[headLength:]...), // every frame is in another place
	} {
		if _, _, err := put(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// stride is 1 around the beginnings of frames, where each byte means something else, and
// more inside of sealed bytes.
func stride(n int, ends []int) int {
	for _, end := range ends {
		if n > end-20 && n < end+frameHead+16 {
			return 1
		}
	}
	if n < headLength+frameHead {
		return 1
	}
	return 13
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestAJournalOfAnotherInstallation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, _ := newWriter(t, Config{Folder: dir, Sync: true})
	if err := w.Committing(till.SubjectPayment, entries(0, 1)); err != nil {
		t.Fatal(err)
	}
	nobody := func(*Record) error { t.Error("it was read"); return nil }
	if _, err := Read([]string{dir}, bytes.Repeat([]byte("x"), 32), installed, nobody); !errors.Is(err, ErrForeign) {
		t.Errorf("with another secret: %v", err)
	}
	if _, err := Read([]string{dir}, secret, installed+1, nobody); !errors.Is(err, ErrForeign) {
		t.Errorf("a copy with the same secret that was made at another time: %v", err)
	}
	for _, folder := range []string{t.TempDir(), filepath.Join(dir, "nowhere")} {
		if _, err := Read([]string{folder}, secret, installed, nobody); err == nil {
			t.Errorf("a folder without a journal is taken for one that lacks nothing")
		}
	}
}

// While the folder cannot be written, a synchronous journal refuses and the other one keeps
// what comes, up to its limit. Afterwards both go on.
func TestAJournalThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "journal")
	var written, failed int
	w, now := newWriter(t, Config{Folder: dir, Count: func(w, f int) { written, failed = written+w, failed+f }})
	breakIt := func() {
		w.open.file.Close() // every write fails, as on a disk that is gone
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
	}
	mend := func() {
		if err := os.Rename(dir+".away", dir); err != nil {
			t.Fatal(err)
		}
	}
	w.Committed(till.SubjectPayment, entries(0, 2))
	w.flush()
	breakIt()
	w.Committed(till.SubjectPayment, entries(2, 2))
	w.flush()
	w.flush()
	if !w.Failing() {
		t.Error("it does not say that it fails")
	}
	mend()
	w.Committed(till.SubjectPayment, entries(4, 1))
	w.flush()
	if got, _, err := read(t, dir); phones(got) != "0000000 0000001 0000002 0000003 0000004 " || err != nil || written != 5 || failed != 0 {
		t.Errorf("%s, %v, %d written, %d failed", phones(got), err, written, failed)
	}
	big := entries(5, 40)
	for i := range big {
		big[i].Row.Document = make([]byte, 1<<20)
	}
	w.Committed(till.SubjectPayment, big)
	if len(w.waiting) != 31 || failed != 9 {
		t.Errorf("%d wait and %d are missing; want that at most %d bytes wait", len(w.waiting), failed, maxWaiting)
	}
	w.waiting, w.bytes = nil, 0

	w.c.Sync = true
	*now = now.Add(time.Minute)
	breakIt()
	if err := w.Committing(till.SubjectPayment, entries(50, 1)); err == nil {
		t.Error("it was written nowhere")
	}
	w.flush()
	failing := w.Failing()
	mend()
	w.space = func(string) (size, free int64, ok bool) { return 1 << 30, maxFrame - 1, true }
	if w.flush(); !w.Failing() {
		t.Error("it does not fail any more, and has no space for a record")
	}
	w.space = func(string) (size, free int64, ok bool) { return 1 << 30, maxFrame, true }
	if w.flush(); !failing || w.Failing() {
		t.Error("it should fail until the folder is back, also while nothing is created")
	}
	if err := w.Committing(till.SubjectPayment, entries(51, 1)); err != nil {
		t.Error(err)
	}
	if got, _, err := read(t, dir); len(got) != 6 || err != nil {
		t.Errorf("%s, %v", phones(got), err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Folder: file, Secret: secret}); err == nil {
		t.Error("a journal in a file")
	}
}

// A journal does not grow for ever: by age, and by size.
func TestAJournalIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, now := newWriter(t, Config{Folder: dir, Sync: true, Keep: 3 * time.Hour})
	for i := range 6 {
		if err := w.Committing(till.SubjectPayment, entries(i, 1)); err != nil {
			t.Fatal(err)
		}
		os.Chtimes(w.open.file.Name(), *now, *now)
		*now = now.Add(segmentAge)
	}
	if n := len(files(t, dir)); n != 6 {
		t.Fatalf("%d segments of an hour each", n)
	}
	w.keep()
	if got, _, err := read(t, dir); phones(got) != "0000003 0000004 0000005 " || err != nil {
		t.Errorf("after three hours: %s, %v", phones(got), err)
	}
	w.c.Max = 1
	w.keep()
	if got, _, err := read(t, dir); phones(got) != "0000005 " || err != nil {
		t.Errorf("the one that is written to stays: %s, %v", phones(got), err)
	}
	w.open.bytes = segmentBytes
	if err := w.Committing(till.SubjectPayment, entries(6, 1)); err != nil || len(files(t, dir)) != 2 {
		t.Errorf("%v, %d segments; want another one for the size", err, len(files(t, dir)))
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	empty, _ := newWriter(t, Config{Folder: t.TempDir()})
	if err := empty.Close(); err != nil || len(files(t, empty.c.Folder)) != 0 {
		t.Errorf("%v, %d segments without a record", err, len(files(t, empty.c.Folder)))
	}
	for _, c := range []Config{{Folder: dir, Keep: time.Minute}, {Folder: dir, Max: 1 << 20}} {
		c.Secret = secret
		if _, err := Open(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// Run writes what waits without being told.
func TestRunWrites(t *testing.T) {
	t.Parallel()
	wrote := make(chan int, 10)
	w, _ := newWriter(t, Config{Folder: t.TempDir(), Count: func(n, _ int) { wrote <- n }})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	w.Committed(till.SubjectPayment, entries(0, 2))
	if n := <-wrote; n != 2 {
		t.Errorf("%d were written", n)
	}
	stop()
	<-done
}
