package deploy_test

import (
	"regexp"
	"strings"
	"testing"
)

// The settings that the package and the archive bring are those that the guide shows, and
// they name no file that the installation does not make.
func TestTheSettingsAreThoseOfTheGuide(t *testing.T) {
	t.Parallel()
	page := read(t, "../docs/guide/production.md")
	postinst, release := read(t, "deb/postinst"), read(t, "release.sh")
	for _, name := range []string{"till.env", "till.toml"} {
		if text := read(t, "deb/"+name); !strings.Contains(page, "\n"+text+"```\n") {
			t.Errorf("the guide does not show %s:\n%s", name, text)
		}
		if !strings.Contains(release, "deploy/deb/"+name) {
			t.Errorf("the archive lacks %s", name)
		}
		if !strings.Contains(page, "etc/"+name) {
			t.Errorf("nobody installs %s from the archive", name)
		}
	}
	for _, named := range regexp.MustCompile(`/etc/till/(\S+)`).FindAllStringSubmatch(read(t, "deb/till.env"), -1) {
		if !strings.Contains(postinst, named[1]) {
			t.Errorf("till.env names /etc/till/%s, which the package does not make", named[1])
		}
	}
	if !strings.Contains(postinst, "install -m 640 -o root -g till") {
		t.Error("Till's user cannot read the settings, and its commands need them")
	}
}

// There is one unit for the service, the shipped one: a second one in a guide would not be
// scored.
func TestTheGuidesShowNoOtherUnit(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"production", "hardening", "operating", "backup", "growing"} {
		if strings.Contains(read(t, "../docs/guide/"+page+".md"), "[Service]\nUser=") {
			t.Errorf("%s.md has a unit of its own", page)
		}
	}
}

// Each proxy of the guide lets through what people and programs open, and nothing else.
func TestTheProxiesOfTheGuideForwardTheConsole(t *testing.T) {
	t.Parallel()
	_, page, _ := strings.Cut(read(t, "../docs/guide/production.md"), "\n## The reverse proxy\n")
	page, _, _ = strings.Cut(page, "\n## ")
	for _, line := range []string{
		"\t@till path /v1/* /console/* /phone/* /docs/* /sdk/*\n", "    location ~ ^/(v1|console|phone|docs|sdk)/ {\n",
		"    http-request deny deny_status 404 unless { path_beg /v1/ /console/ /phone/ /docs/ /sdk/ }\n",
	} {
		if !strings.Contains(page, line) {
			t.Errorf("no proxy has %q", line)
		}
	}
	if n := strings.Count(page, "404"); n != 3 {
		t.Errorf("%d of 3 proxies refuse the rest", n)
	}
}

// The guide makes the folder of backups, for the service's user, before the first backup, and
// the unit may write there. Only a SQLite file is saved by till backup.
func TestTheGuideMakesTheFolderOfBackups(t *testing.T) {
	t.Parallel()
	_, page, _ := strings.Cut(read(t, "../docs/guide/backup.md"), "\n## Set it up\n")
	made, first := strings.Index(page, "\ninstall -d -m 700 -o till -g till /backup\n"), strings.Index(page, "$ till backup ")
	if made < 0 || first < made {
		t.Errorf("the folder is made at %d, the first backup at %d", made, first)
	}
	if !strings.Contains(read(t, "systemd/till-backup.service"), "\nReadWritePaths=-/backup\n") {
		t.Error("the unit of backups may not write to /backup")
	}
	_, upgrade, _ := strings.Cut(read(t, "../docs/guide/production.md"), "\n## Upgrade\n")
	step, _, _ := strings.Cut(upgrade, "till backup\n")
	if !strings.Contains(step, "with SQLite (with PostgreSQL, [make a backup with its own tools](backup.md#postgresql))") {
		t.Errorf("the first step of an upgrade is for every database: %s", step)
	}
}
