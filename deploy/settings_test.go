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
