package cli

import (
	"runtime/debug"
	"testing"
)

// The version is what the go command wrote into the program.
func TestVersionOf(t *testing.T) {
	t.Parallel()
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	dirty := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, c := range []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.4.2", []debug.BuildSetting{commit}, "v1.4.2"},
		{"v1.4.2-rc.1", nil, "v1.4.2-rc.1"},
		{"v0.0.0-20261117064336-0123456789ab", []debug.BuildSetting{commit}, "devel-0123456789ab"},
		{"v1.4.2+dirty", []debug.BuildSetting{commit, dirty}, "devel-0123456789ab-dirty"},
		{"(devel)", nil, "devel"},
	} {
		if got := versionOf(&debug.BuildInfo{Main: debug.Module{Version: c.version}, Settings: c.settings}); got != c.want {
			t.Errorf("%s %v: got %s, want %s", c.version, c.settings, got, c.want)
		}
	}
}
