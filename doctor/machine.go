package doctor

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"till"
	"till/books"
	"till/internal/system"
	"till/store"
	"till/upkeep"
)

// Limits of what is worth a warning: a tenth of the disk, so many open files, and how
// recent the pulse of an instance must be for it to count as running.
const (
	minFreeShare = 0.1
	minOpenFiles = 4096
)

// examineDisk warns if the disk of a SQLite file is nearly full. A full disk refuses
// payments, and loses none.
func (d *doctor) examineDisk(database string) {
	size, free, ok := system.DiskSpace(filepath.Dir(database))
	if !ok || size == 0 {
		return
	}
	text := fmt.Sprintf("%s of %s are free", megabytes(free), megabytes(size))
	d.addIf("disk", float64(free) < minFreeShare*float64(size), Risky, text, text+"; when it is full, payments are refused")
}

// addTroubles adds what the status says and no check has said as loudly.
func (d *doctor) addTroubles(st *books.Status) {
	d.Troubles = st.Troubles()
	for _, t := range d.Troubles {
		v := Risky
		if t.Stops {
			v = Wrong
		}
		d.add("trouble", v, "%s: %s", t.Name, t.Text)
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// examineFiles warns if the server may open few files: each connection is one. Only Linux
// shows it of another process.
func (d *doctor) examineFiles(pid int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return
	}
	if n, found := openFilesLimit(string(text)); found {
		said := fmt.Sprintf("the server may open %d", n)
		d.addIf("open files", n < minOpenFiles, Risky, said, said+fmt.Sprintf("; raise LimitNOFILE to %d or more, because each connection is one", minOpenFiles))
	}
}

// openFilesLimit reads the soft limit from /proc/PID/limits.
func openFilesLimit(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, "Max open files"); found {
			if fields := strings.Fields(rest); len(fields) > 0 {
				n, err := strconv.ParseInt(fields[0], 10, 64)
				return n, err == nil
			}
		}
	}
	return 0, false
}

// addInstances reports which releases run.
func (d *doctor) addInstances(versions map[string]int) {
	if len(versions) == 0 {
		d.add("instances", Fine, "none was seen within a minute")
		return
	}
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(versions)) {
		name := v
		if name == "" {
			name = "a build without a version"
		}
		parts = append(parts, fmt.Sprintf("%d of %s", versions[v], name))
	}
	text := strings.Join(parts, ", ")
	d.addIf("instances", len(versions) > 1, Risky, text, text+": two releases run side by side; end the upgrade, or roll it back")
}

// examineLevel reports whether the last upgrade is finished.
func (d *doctor) examineLevel(ctx context.Context, s *store.Store) error {
	l, err := upkeep.ReadLevels(ctx, s)
	if err != nil {
		return err
	}
	switch older := len(l.Older(l.Program)); {
	case older > 0:
		d.add("level", Risky, "%s: the upgrade is not finished; see 'till level'", till.Count(older, "instance of an older release runs", "instances of an older release run"))
	case l.Level < l.Program:
		d.add("level", Fine, "it is %d and can be raised to %d; until then %s", l.Level, l.Program, l.WayBack())
	default:
		d.add("level", Fine, "it is this program's, %d", l.Level)
	}
	return nil
}
