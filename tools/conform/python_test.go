package conform

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
)

// python is the interpreter: PYTHON, or the system's own, which has the
// frameworks of the distribution, or another one.
func python() (string, error) {
	if path, err := exec.LookPath("/usr/bin/python3"); err == nil && os.Getenv("PYTHON") == "" {
		return path, nil
	}
	return exec.LookPath(cmp.Or(os.Getenv("PYTHON"), "python3"))
}

func pythonDrivers(string) (drivers, error) {
	interpreter, err := python()
	if err != nil {
		return drivers{}, err
	}
	driver, err := filepath.Abs("../../sdk/python/driver/driver.py")
	return drivers{files: []string{interpreter, driver, "files"}, sql: []string{interpreter, driver, "sqlite"}}, err
}
