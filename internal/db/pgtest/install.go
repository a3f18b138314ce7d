package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
)

// find returns the folder of the server's programs, and installs them on a
// Debian machine that lacks them if it may.
func find(ctx context.Context) (string, error) {
	if bin := installed(); bin != "" {
		return bin, nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return "", errors.New("PostgreSQL is not installed: put initdb and postgres on the PATH, or name a server in TILL_TEST_POSTGRES_URL")
	}
	// Debian makes and starts a cluster with the package unless told not to.
	const conf = "/etc/postgresql-common/createcluster.conf"
	if _, err := os.Stat(conf); errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(conf), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(conf, []byte("create_main_cluster = false\n"), 0o644); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{{"update", "-qq"}, {"install", "-y", "-qq", "-o", "Dpkg::Options::=--force-confold", "--no-install-recommends", "postgresql"}} {
		cmd := exec.CommandContext(ctx, apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("install PostgreSQL: %w: %s", err, bytes.TrimSpace(out))
		}
	}
	if bin := installed(); bin != "" {
		return bin, nil
	}
	return "", errors.New("PostgreSQL was installed but its programs cannot be found")
}

func installed() string {
	// Debian keeps one folder per version and the programs off the PATH.
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	sort.Strings(found)
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		return filepath.Dir(path)
	}
	return ""
}
