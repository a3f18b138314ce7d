package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/doctor"
	"till/internal/logs"
	"till/store"
	"till/store/admin"
)

// bundle is what 'till doctor --bundle' writes: what helpers need to know, and
// nothing about clients or persons. Its parts have no client's text by construction; texts of the
// configuration are shown only under keys of a short list, every other one as its length and a
// digest under a salt that is new with each bundle, so that equal values can be seen to be equal
// and none can be tried out. A part that cannot be read is replaced by the reason.
type bundle struct {
	path, admin      string
	adminToken       string // the file of its token
	database, config string
	profiles, verify bool

	salt  []byte // of the digests, new with each bundle
	files []bundleFile
}

type bundleFile struct {
	name, about string
	read        func(ctx context.Context) ([]byte, error)
	binary      bool // a profile: it holds no text of ours to mask
}

// Limits of the parts.
const (
	maxBundlePart   = 32 << 20
	maxBundleConfig = 1 << 20
	maxBundleCases  = 100_000 // counted
)

// plan lists the files, without reading anything.
func (b *bundle) plan(found *doctor.Findings) {
	add := func(name, about string, read func(ctx context.Context) ([]byte, error)) {
		b.files = append(b.files, bundleFile{name: name, about: about, read: read})
	}
	add("version.json", "the program, its build and the machine's kind", func(context.Context) ([]byte, error) { return b.readVersion() })
	add("findings.json", "what the doctor has found", func(context.Context) ([]byte, error) {
		var w bytes.Buffer
		err := cli.PrintJSON(&w, findingsObject(found))
		return w.Bytes(), err
	})
	if b.config != "" {
		add("config.json", "the configuration; texts that may be credentials by length and salted digest", func(context.Context) ([]byte, error) { return b.readConfig() })
	}
	if !found.Damaged {
		add("tables.json", "sizes of the tables, about how many rows they have", b.readTables)
		add("plans.json", "how the database runs the main reads", b.readPlans)
		add("state.json", "schema, instances, turns, breakers, lanes, counts of cases, backups, statements", b.readState)
		if b.verify {
			add("verify.json", "the proof of the books, without details", b.readVerify)
		}
	}
	if b.admin != "" {
		add("metrics.txt", "/metrics of the running server", b.fromAdmin("/metrics"))
		add("log.txt", "the last 2000 lines of its log, masked", b.fromAdmin("/debug/log"))
		if b.profiles {
			add("goroutine.txt", "what each goroutine does", b.fromAdmin("/debug/pprof/goroutine?debug=1"))
			add("heap.pprof", "what the memory holds: sizes and functions, no contents", b.fromAdmin("/debug/pprof/heap"))
			b.files[len(b.files)-1].binary = true
		}
	}
}

func (b *bundle) fromAdmin(path string) func(ctx context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		return readAdmin(ctx, b.admin, b.adminToken, path, maxBundlePart)
	}
}

// write prints the list of files, then reads and writes them.
func (b *bundle) write(cmd *cobra.Command, found *doctor.Findings) error {
	b.salt = make([]byte, 16)
	rand.Read(b.salt)
	b.plan(found)
	w := cmd.ErrOrStderr()
	cli.Printf(w, "%s will hold:\n", b.path)
	err := cli.Table(w, func(row func(cells ...any)) {
		for _, f := range b.files {
			row("  "+f.name, f.about)
		}
	})
	if err != nil {
		return err
	}
	return b.writeFile(cmd.Context())
}

// writeFile reads and writes the files. A part that cannot be read is replaced by why: half
// a bundle helps, too.
func (b *bundle) writeFile(ctx context.Context) (err error) {
	file, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make the bundle: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			os.Remove(b.path)
		}
	}()
	zipped := gzip.NewWriter(file)
	archive := tar.NewWriter(zipped)
	for _, f := range b.files {
		if err := b.add(ctx, archive, &f); err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

// add writes one file. Every text goes through the mask of the log once more.
func (b *bundle) add(ctx context.Context, archive *tar.Writer, f *bundleFile) error {
	text, err := f.read(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		text = []byte("not read: " + err.Error() + "\n")
	}
	if !f.binary || err != nil {
		text = []byte(logs.Redact(string(text)))
	}
	if err := archive.WriteHeader(&tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(text)), ModTime: time.Now()}); err != nil {
		return err
	}
	_, err = archive.Write(text)
	return err
}

func (b *bundle) readVersion() ([]byte, error) {
	database := map[string]any{"engine": "sqlite", "file": filepath.Base(b.database)}
	if store.IsPostgres(b.database) {
		database = map[string]any{"engine": "postgres"}
		if u, err := url.Parse(b.database); err == nil {
			database["host_digest"], database["sslmode"] = b.digest(u.Host), u.Query().Get("sslmode")
		}
	}
	return json.MarshalIndent(map[string]any{
		"version": cli.VersionText(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "processors": runtime.NumCPU(), "database": database, "at": time.Now().UTC(),
	}, "", "  ")
}

// digest shows whether two texts are the same, and nothing else of them.
func (b *bundle) digest(text string) string {
	h := sha256.Sum256(append(slices.Clone(b.salt), text...))
	return fmt.Sprintf("%d bytes, %s", len(text), hex.EncodeToString(h[:4]))
}

// plainKeys are keys of the configuration whose texts are shown. All others may be a
// credential, an address of somebody's or a name.
var plainKeys = []string{"name", "operator", "method", "methods", "country", "countries", "currency", "currencies", "kind", "target_environment", "environment", "every", "keep", "connection", "connections"}

func (b *bundle) readConfig() ([]byte, error) {
	file, err := os.Open(b.config)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxBundleConfig))
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if _, err := toml.Decode(string(text), &all); err != nil {
		return nil, errors.New("it is no TOML") // the library's text shows the line
	}
	return json.MarshalIndent(b.mask("", all), "", "  ")
}

// mask replaces the texts of a value of the configuration.
func (b *bundle) mask(key string, v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range x {
			out[k] = b.mask(k, v)
		}
		return out
	case []map[string]any:
		out := make([]any, len(x))
		for i, v := range x {
			out[i] = b.mask(key, v)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, v := range x {
			out[i] = b.mask(key, v)
		}
		return out
	case string:
		if slices.Contains(plainKeys, key) {
			return x
		}
		return b.digest(x)
	}
	return v
}

// readState reads what the instances share. It holds no client, no person and no details of
// cases.
func (b *bundle) readState(ctx context.Context) ([]byte, error) {
	return b.withStore(ctx, func(s *store.Store) (any, error) { return b.state(ctx, s) })
}

func (b *bundle) state(ctx context.Context, s *store.Store) (map[string]any, error) {
	out := map[string]any{"schema": s.SchemaNumber()}
	err := s.View(ctx, func(tx *store.Tx) error {
		var errs [8]error
		out["now"] = tx.Now().String()
		out["instances"], errs[0] = admin.Instances(ctx, tx)
		out["turns"], errs[1] = admin.Turns(ctx, tx)
		out["breakers"], errs[2] = admin.Breakers(ctx, tx)
		out["lanes"], errs[3] = tx.Lanes(ctx)
		out["open_cases"], errs[4] = tx.OpenKinds(ctx, maxBundleCases)
		out["statements"], errs[5] = admin.StatementSums(ctx, tx)
		for i, kind := range []admin.BackupKind{admin.KindBackup, admin.KindDrill} {
			r, err := admin.ReadBackup(ctx, tx, kind)
			if r != nil {
				r.Place = b.digest(r.Place)
				r.Problem = b.digest(r.Problem)
			}
			out[string(kind)], errs[6+i] = r, err
		}
		return errors.Join(errs[:]...)
	})
	return out, err
}

// withStore reads something from the database as JSON.
func (b *bundle) withStore(ctx context.Context, read func(s *store.Store) (any, error)) ([]byte, error) {
	s, err := store.Open(ctx, store.Config{Path: b.database, Readers: 1})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	out, err := read(s)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(readable(reflect.ValueOf(out)), "", "  ")
}

// readable returns a value with times and ids as text, at any depth: as they are, the one
// is a number of microseconds, and the other a list of bytes.
func readable(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	switch x := v.Interface().(type) {
	case till.Time:
		return cli.TimeOrNull(x)
	case till.ID:
		return cli.IDOrNull(x)
	case []byte, json.Marshaler:
		return x
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return readable(v.Elem())
	case reflect.Slice, reflect.Array:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = readable(v.Index(i))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for _, key := range v.MapKeys() {
			out[fmt.Sprint(key)] = readable(v.MapIndex(key))
		}
		return out
	case reflect.Struct:
		out := map[string]any{}
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.IsExported() && !f.Anonymous {
				out[f.Name] = readable(v.FieldByIndex(f.Index))
			}
		}
		return out
	}
	return v.Interface()
}

func (b *bundle) readTables(ctx context.Context) ([]byte, error) {
	return b.withStore(ctx, func(s *store.Store) (any, error) { return s.TableSizes(ctx) })
}

func (b *bundle) readPlans(ctx context.Context) ([]byte, error) {
	return b.withStore(ctx, func(s *store.Store) (any, error) { return s.Plans(ctx) })
}

// readVerify proves the books. A problem's text may name a receipt, so only its kind and
// how often it was found are shown.
func (b *bundle) readVerify(ctx context.Context) ([]byte, error) {
	return b.withStore(ctx, func(s *store.Store) (any, error) {
		r, err := books.Verify(ctx, s, books.Options{})
		kinds := map[string]int{}
		for _, p := range r.Problems {
			kinds[p.Invariant]++
		}
		return map[string]any{"payments": r.Payments, "payouts": r.Payouts, "entries": r.Entries, "problems": kinds, "omitted": r.Omitted}, err
	})
}
