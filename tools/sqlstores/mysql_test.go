package sqlstores

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/till-project/till/sdk/go/sqlstore"
)

// TestMySQL runs the suite on a MariaDB of its own. 'make sdk' installs one; where
// there is none it says so.
func TestMySQL(t *testing.T) {
	t.Parallel()
	server, err := exec.LookPath("mariadbd")
	if err != nil {
		t.Log("there is no mariadbd here, so the dialect of MySQL is not tried: make sdk installs it")
		return
	}
	folder, err := os.MkdirTemp("", "till-mysql-") // a short name, for its socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	data, socket := filepath.Join(folder, "data"), filepath.Join(folder, "socket")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	// Without its tables of users there is nobody to ask for.
	cmd := exec.Command(server, "--no-defaults", "--datadir="+data, "--socket="+socket, "--skip-networking", "--skip-grant-tables", "--user=root", "--pid-file="+filepath.Join(folder, "pid"), "--innodb-flush-log-at-trx-commit=0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	admin := mysql(t, socket, "")
	for end := time.Now().Add(60 * time.Second); admin.Ping() != nil; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server does not answer")
		}
	}
	n := 0
	suite(t, sqlstore.MySQL, func(t *testing.T) *sql.DB {
		n++
		name := fmt.Sprintf("shop%d", n)
		if _, err := admin.Exec("CREATE DATABASE " + name); err != nil {
			t.Fatal(err)
		}
		return mysql(t, socket, name)
	})
}

func mysql(t *testing.T, socket, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", "root@unix("+socket+")/"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
