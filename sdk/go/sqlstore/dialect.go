package sqlstore

import (
	_ "embed"
	"strconv"
	"strings"
)

// Dialect is what one database says differently.
type Dialect struct {
	schema string
	dollar bool   // $1 instead of ?
	ignore string // after an INSERT: leave what is there
	lock   string // after a SELECT: nobody else changes these rows
	rank   string // a reserved word in MySQL
	upsert string // after an INSERT of a cursor

	details string // the type of a long text
}

//go:embed schema/sqlite.sql
var sqliteSchema string

//go:embed schema/postgres.sql
var postgresSchema string

//go:embed schema/mysql.sql
var mysqlSchema string

// The databases that are known.
var (
	SQLite = Dialect{schema: sqliteSchema, details: "TEXT", ignore: " ON CONFLICT DO NOTHING", rank: "rank",
		upsert: " ON CONFLICT (name) DO UPDATE SET log_id = excluded.log_id, after_sequence = excluded.after_sequence"}
	Postgres = Dialect{schema: postgresSchema, details: "TEXT", dollar: true, ignore: " ON CONFLICT DO NOTHING", lock: " FOR UPDATE", rank: "rank",
		upsert: " ON CONFLICT (name) DO UPDATE SET log_id = excluded.log_id, after_sequence = excluded.after_sequence"}
	MySQL = Dialect{schema: mysqlSchema, details: "MEDIUMTEXT CHARACTER SET utf8mb4", ignore: " ON DUPLICATE KEY UPDATE attempt = attempt", lock: " FOR UPDATE", rank: "`rank`",
		upsert: " ON DUPLICATE KEY UPDATE log_id = VALUES(log_id), after_sequence = VALUES(after_sequence)"}
)

// text writes a statement in the words of the database.
func (d *Dialect) text(statement string) string {
	if !d.dollar {
		return statement
	}
	var b strings.Builder
	n := 0
	for _, r := range statement {
		if r == '?' {
			n++
			b.WriteString("$" + strconv.Itoa(n))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// statements are the single statements of the schema.
func (d *Dialect) statements() []string {
	var out []string
	for _, s := range strings.Split(d.schema, ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, strings.TrimSuffix(s, ";"))
		}
	}
	return out
}

// conflict reports whether the database undid a transaction because another one
// was in its way. The drivers' own errors are not imported: their texts name the
// codes.
func conflict(err error) bool {
	text := strings.ToLower(err.Error())
	for _, sign := range []string{"database is locked", "sqlite_busy", "40001", "40p01", "could not serialize", "deadlock", "error 1213", "error 1205"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
