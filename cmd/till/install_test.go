package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheInstallationOfTheGuide installs Till by the letter of docs/guide/production.md, from the
// files of a release, with real users, and goes on to the first live payment, a backup, a drill
// and an upgrade. It does so on a copy of this machine whose files, processes and addresses are
// its own: nothing here changes. There is no systemd in it; testdata/install/systemctl plays the
// shipped units: their user, their environment and where they may write.
//
// TILL_RELEASE names the folder that deploy/release.sh has filled. It needs root.
func TestTheInstallationOfTheGuide(t *testing.T) {
	release := os.Getenv("TILL_RELEASE")
	if release == "" {
		t.Skip("make soak runs it: it needs the files of a release, and root")
	}
	production, backup := "docs/guide/production.md", "docs/guide/backup.md"
	begin := map[string]string{"package": "From the Debian package", "archive": "From the archive"}
	for _, way := range []struct{ from, engine string }{{"package", "SQLite"}, {"package", "PostgreSQL"}, {"archive", "SQLite"}, {"archive", "PostgreSQL"}} {
		t.Run(way.from+" "+way.engine, func(t *testing.T) {
			w := &walk{t: t, way: way.from, postgres: way.engine == "PostgreSQL"}
			w.add(production, begin[way.from])
			w.add(production, "The settings")
			w.add(production, "systemd")
			w.add(production, "Commands")
			w.add(production, "The first live payment")
			if !w.postgres {
				w.add(backup, "Set it up")
				w.add(backup, "Try it out")
				w.add("docs/guide/hardening.md", "systemd")
			}
			w.add(production, "Upgrade")
			w.run(release)
		})
	}
}

// walk is one way through the guide.
type walk struct {
	t        *testing.T
	way      string // package or archive
	postgres bool
	steps    []*block
}

// add takes in the blocks below a heading, but not those of the other way and the other engine.
func (w *walk) add(page, heading string) {
	w.t.Helper()
	below, open := map[int]string{}, false // the heading above each line
	last := ""
	for i, line := range strings.Split(guideText(w.t, page), "\n") {
		if fenceLine.MatchString(line) {
			open = !open
		} else if !open && strings.HasPrefix(line, "#") {
			last = strings.TrimLeft(line, "# ")
		}
		below[i+1] = last
	}
	n := len(w.steps)
	for _, b := range readBlocks(w.t, page) {
		if below[b.line] == heading && w.wants(b) {
			w.steps = append(w.steps, b)
		}
	}
	if len(w.steps) == n && heading != "The settings" {
		w.t.Fatalf("%s has nothing to do under %q", page, heading)
	}
}

func (w *walk) wants(b *block) bool {
	switch {
	case b.sample != "" && b.sample != "TestTheInstallationOfTheGuide", b.output, b.notRun != "", b.file != "", b.lang != "sh" && b.lang != "console":
		return false
	case strings.Contains(b.text, "createdb"):
		return w.postgres
	case strings.Contains(b.text, "till backup"):
		return !w.postgres
	case strings.Contains(b.text, "dpkg -i"):
		return w.way == "package"
	case strings.Contains(b.text, "cd /opt/till"):
		return w.way == "archive"
	}
	return true
}

// byRoot matches what the guides have root do.
var byRoot = regexp.MustCompile(`systemctl|>>/etc/till|/dev/stdin|age-keygen|till drill|dpkg -i|/opt/till|runuser|install -d`)

// run does all steps in a copy of the machine.
func (w *walk) run(release string) {
	dir := w.t.TempDir()
	var script strings.Builder
	for i, b := range w.steps {
		text := b.text
		if b.lang == "console" {
			text = ""
			for _, s := range consoleSteps(b.text) {
				text += s[0] + "\n"
			}
		}
		who := "till"
		if byRoot.MatchString(text) {
			who = "root"
		}
		text = strings.TrimPrefix(text, "su -s /bin/bash - till\n") // step does that
		kind := "step"
		if b.start {
			kind = "server"
		}
		name := filepath.Join(dir, fmt.Sprintf("%02d", i))
		for suffix, part := range map[string]string{"": text, ".after": b.after} {
			if err := os.WriteFile(name+suffix, []byte(part), 0o644); err != nil {
				w.t.Fatal(err)
			}
		}
		fmt.Fprintf(&script, "%s %s '%s' %s\n", kind, who, b, name)
	}
	if err := os.WriteFile(filepath.Join(dir, "steps"), []byte(script.String()), 0o644); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		w.t.Fatal(err)
	}
	if release, err = filepath.Abs(release); err != nil {
		w.t.Fatal(err)
	}
	engine := "sqlite"
	if w.postgres {
		engine = "postgres"
	}
	cmd := exec.CommandContext(w.t.Context(), "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", testdata+"/install/walk.sh", testdata, release, dir, engine)
	out, err := cmd.CombinedOutput()
	w.t.Logf("%s", out)
	if err != nil {
		w.t.Fatal(err)
	}
}
