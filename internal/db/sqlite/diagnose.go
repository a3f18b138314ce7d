package sqlite

import (
	"context"
	"errors"

	sqlite3 "modernc.org/sqlite/lib"

	"till/internal/db"
)

// Diagnosis is the state of a SQLite file.
type Diagnosis struct {
	Journal string // the journal mode, "" if it cannot be read
	Damage  string // what is wrong with its pages, "" if nothing is
	Log     string // why the log beside it is not its own, "" if it is
}

// Diagnose reads a file without changing it. A server may be using it.
func Diagnose(path string) (*Diagnosis, error) {
	d := &Diagnosis{}
	var foreign *ForeignLogError
	if err := checkLog(path); errors.As(err, &foreign) {
		d.Log = err.Error()
		return d, nil
	} else if err != nil {
		return nil, err
	}
	check, err := d.check(path)
	switch {
	case err != nil:
		d.Damage = err.Error()
	case check != "ok":
		d.Damage = check
	}
	return d, nil
}

func (d *Diagnosis) check(path string) (result string, err error) {
	h, err := open(path, sqlite3.SQLITE_OPEN_READONLY)
	if err != nil {
		return "", err
	}
	defer h.close()
	if err := h.script(`PRAGMA busy_timeout = 5000; PRAGMA query_only = ON`); err != nil {
		return "", err
	}
	if _, err := h.run(`PRAGMA journal_mode`, nil, func(r db.Row) error { return r.Scan(&d.Journal) }); err != nil {
		return "", err
	}
	_, err = h.run(`PRAGMA quick_check(1)`, nil, func(r db.Row) error { return r.Scan(&result) })
	return result, err
}

// maxDamage is how many messages are returned.
const maxDamage = 20

var (
	selectTables = db.Define(db.SQL{Name: "sqlite.selectTables",
		SQLite: `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`})
	checkTable = db.Define(db.SQL{Name: "sqlite.checkTable",
		SQLite: `SELECT integrity_check FROM pragma_integrity_check($1)`})
)

// Damage returns what is wrong with the pages of every table and its indexes.
// Each table is read in a snapshot of its own.
func Damage(ctx context.Context, d *db.DB) (found []string, err error) {
	var tables []string
	err = d.View(ctx, func(tx *db.Tx) error {
		tables = nil
		return tx.Query(ctx, selectTables, nil, func(r db.Row) error {
			var name string
			err := r.Scan(&name)
			tables = append(tables, name)
			return err
		})
	})
	for _, name := range tables {
		if err != nil {
			break
		}
		err = d.View(ctx, func(tx *db.Tx) error {
			return tx.Query(ctx, checkTable, []any{name}, func(r db.Row) error {
				var text string
				err := r.Scan(&text)
				if text != "ok" && len(found) < maxDamage {
					found = append(found, name+": "+text)
				}
				return err
			})
		})
	}
	return found, err
}
