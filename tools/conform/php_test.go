package conform

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
)

// phpDrivers are those of the SDK for PHP, with the interpreter of the system.
func phpDrivers(string) (drivers, error) {
	interpreter, err := exec.LookPath(cmp.Or(os.Getenv("PHP"), "php"))
	if err != nil {
		return drivers{}, err
	}
	driver, err := filepath.Abs("../../sdk/php/driver/driver.php")
	return drivers{files: []string{interpreter, driver, "files"}, sql: []string{interpreter, driver, "sqlite"}}, err
}
