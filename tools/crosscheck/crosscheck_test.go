package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestANameThatASystemLacksIsFound(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example\n\ngo 1.26.0\n",
		"main.go":         "package main\n\nimport \"example/lock\"\n\nfunc main() { lock.Take() }\n",
		"lock/linux.go":   "//go:build linux\n\npackage lock\n\nfunc Take() {}\n",
		"lock/windows.go": "//go:build windows\n\npackage lock\n\nfunc Take() { missing() }\n",
		"lock/other.go":   "//go:build !linux && !windows\n\npackage lock\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[string]string{
		"linux/arm64":   "",
		"windows/amd64": "1 error",
		"darwin/arm64":  "1 error",
		"linux":         "not a system and an architecture",
		"plan10/amd64":  "unsupported GOOS/GOARCH pair",
	} {
		n, err := check(root, ".", target)
		if want == "" && (err != nil || n != 2) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %d packages and %v, want %q", target, n, err, want)
		}
	}
}
