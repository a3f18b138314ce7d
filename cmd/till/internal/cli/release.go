package cli

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"

	"till/api"
)

// VersionLine is the version as a person reads it.
func VersionLine() string {
	return fmt.Sprintf("till %s (API %s, %s)", VersionText(), api.Version, runtime.Version())
}

// VersionText returns the release, or the commit that was built.
func VersionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return versionOf(info)
}

// versionOf reads the version that the go command writes into a program: the
// tag of a clean checkout, or its commit.
func versionOf(info *debug.BuildInfo) string {
	if v := info.Main.Version; releaseTag.MatchString(v) {
		return v
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = "-" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if revision == "" {
		return "devel"
	}
	return "devel" + revision + dirty
}

// releaseTag is v1.4.2 or v1.4.2-rc.1, and no version that go makes up for a
// commit without a tag.
var releaseTag = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-rc\.[0-9]+)?$`)
