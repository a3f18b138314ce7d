package schema

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"till/internal/db"
)

// lastBeforeCitus is the newest migration of the first release that could be distributed:
// each later one may meet a distributed database.
const lastBeforeCitus = "0063_level"

// Citus refuses some commands on tables that it knows, and leaves parts of others where
// nobody looks. No cluster is needed to see that a migration has none of them. What a
// cluster says is shown by TestTheDatabaseOfEveryReleaseIsMigrated in books.
func TestLaterMigrationsAreFitForCitus(t *testing.T) {
	t.Parallel()
	all, err := migrations(db.Citus)
	if err != nil {
		t.Fatal(err)
	}
	first := firstColumns{}
	for _, m := range all {
		text := strings.Join(m.parts, "\n")
		if later := m.version > lastBeforeCitus; later {
			for _, problem := range unfit(text, first) {
				t.Errorf("%s: %s", m.version, problem)
			}
		}
		first.learn(text)
	}
	if first["payments"] != "client_id" || first["people"] == "client_id" || len(first) < 35 {
		t.Errorf("the first columns are %v", first)
	}
}

// Each text was refused by Citus 13.2, or left rows behind on the coordinator; the good ones were not.
func TestUnfitForCitus(t *testing.T) {
	t.Parallel()
	first := firstColumns{"wallets": "client_id", "clients": "client_id", "people": "person_id", "payment_moves": "from_status"}
	for _, good := range []string{
		`ALTER TABLE wallets ADD COLUMN a BIGINT NOT NULL DEFAULT 0, ADD COLUMN b TEXT`,
		`ALTER TABLE wallets ADD CONSTRAINT a CHECK (n IN (1, 2))`,
		`ALTER TABLE wallets ADD CONSTRAINT a FOREIGN KEY (client_id) REFERENCES clients (client_id)`,
		`ALTER TABLE wallets ADD CONSTRAINT a FOREIGN KEY (status, next) REFERENCES payment_moves (from_status, to_status)`,
		`CREATE UNIQUE INDEX i ON wallets (client_id, n) WHERE n > 0; CREATE UNIQUE INDEX j ON people (name)`,
		`CREATE TABLE t (client_id BYTEA NOT NULL REFERENCES clients, id BYTEA NOT NULL, n BIGINT CHECK (n IN (1, 2)), PRIMARY KEY (client_id, id), UNIQUE (n, client_id))`,
		`CREATE TABLE t (id BYTEA NOT NULL PRIMARY KEY REFERENCES people, n BIGINT UNIQUE)`,
		`UPDATE wallets SET n = n + 1`,
		"-- ALTER TABLE wallets RENAME TO t;\nCREATE INDEX i ON wallets (n)",
		`CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE wallets SET n = random(); RETURN NEW; END $$`,
	} {
		if problems := unfit(good, first); len(problems) > 0 {
			t.Errorf("%s\n%q", good, problems)
		}
	}
	for _, bad := range []string{
		`ALTER TABLE wallets ADD CONSTRAINT a CHECK (n > 0), ADD COLUMN b TEXT`,
		`ALTER TABLE wallets ADD COLUMN b TEXT, ADD CHECK (n > 0)`,
		`ALTER TABLE wallets ADD COLUMN a BIGINT CHECK (a > 0)`,
		`alter table only wallets add column a bigint unique`,
		`ALTER TABLE wallets ADD COLUMN a BYTEA REFERENCES clients (client_id)`,
		`ALTER TABLE wallets ADD COLUMN a BIGSERIAL`,
		`ALTER TABLE wallets ALTER COLUMN m DROP EXPRESSION`,
		`ALTER TABLE wallets ALTER COLUMN m SET STATISTICS 1000`,
		`ALTER TABLE wallets ALTER COLUMN m SET STORAGE PLAIN`,
		`ALTER TABLE wallets CLUSTER ON wallets_pkey`,
		`ALTER TABLE wallets RENAME TO t`,
		`ALTER TABLE wallets ADD CONSTRAINT a UNIQUE (n)`,
		`ALTER TABLE wallets ADD CONSTRAINT a FOREIGN KEY (id) REFERENCES people (person_id)`,
		`ALTER TABLE people ADD CONSTRAINT a FOREIGN KEY (person_id) REFERENCES clients (client_id)`,
		`CREATE UNIQUE INDEX i ON wallets (n)`,
		`CREATE TABLE t AS SELECT * FROM wallets`,
		`CREATE TABLE t (client_id BYTEA NOT NULL, id BYTEA NOT NULL)`,
		`CREATE TABLE t (client_id BYTEA NOT NULL, id BYTEA NOT NULL PRIMARY KEY)`,
		`CREATE TABLE t (client_id BYTEA NOT NULL PRIMARY KEY, n BIGINT, UNIQUE (n))`,
		`CREATE TABLE t (client_id BYTEA NOT NULL PRIMARY KEY REFERENCES people (person_id))`,
		`CREATE TABLE t (id BYTEA NOT NULL PRIMARY KEY, client_id BYTEA REFERENCES clients)`,
		`CREATE TABLE t (client_id BYTEA NOT NULL PRIMARY KEY); INSERT INTO t SELECT client_id FROM clients`,
		`UPDATE wallets SET n = random()`,
		`UPDATE wallets SET at = extract(epoch FROM clock_timestamp())`,
		`UPDATE wallets SET client_id = id`,
	} {
		if len(unfit(bad, first)) == 0 {
			t.Errorf("nothing is wrong with %s", bad)
		}
	}
}

// firstColumns are those of tables, by name: they say where a table is.
type firstColumns map[string]string

func (f firstColumns) learn(text string) {
	for _, c := range commandsOf(text) {
		if m := createsTable.FindStringSubmatch(c); m != nil {
			column, _, _ := strings.Cut(strings.TrimSpace(m[2]), " ")
			f[m[1]] = column
		}
		if m := renamesTable.FindStringSubmatch(c); m != nil {
			f[m[2]] = f[m[1]]
			delete(f, m[1])
		}
	}
}

func (f firstColumns) distributed(table string) bool { return f[table] == "client_id" }

var (
	createsTable   = regexp.MustCompile(`(?is)^create table (?:if not exists )?(\w+) \((.*)\)`)
	copiesTable    = regexp.MustCompile(`(?is)^create table (?:if not exists )?\w+ as `)
	renamesTable   = regexp.MustCompile(`(?is)^alter table (?:only )?(\w+) rename to (\w+)`)
	altersTable    = regexp.MustCompile(`(?is)^alter table (?:only )?(\w+) (.*)$`)
	uniqueIndex    = regexp.MustCompile(`(?is)^create unique index (?:\w+ )?on (\w+) \(([^)]*)\)`)
	addsConstraint = regexp.MustCompile(`(?i)^add (constraint|check|unique|primary|foreign|exclude)`)
	addsColumn     = regexp.MustCompile(`(?i)^add (column )?\w+ `)
	ofColumn       = regexp.MustCompile(`(?i) (check|unique|primary key|references|\w*serial)\b`)
	neverAlters    = regexp.MustCompile(`(?i) drop expression| set storage | set statistics |^cluster on `)
	uniqueKey      = regexp.MustCompile(`(?is)\b(?:unique|primary key) \(([^)]*)\)`)
	uniqueColumn   = regexp.MustCompile(`(?i)^(\w+) .*\b(unique|primary key)\b`)
	references     = regexp.MustCompile(`(?i)\breferences (\w+)`)
	volatile       = regexp.MustCompile(`(?i)\b(random|clock_timestamp|timeofday|gen_random_uuid|nextval)\(`)
	movesClient    = regexp.MustCompile(`(?is)^update \w+ .*\bset (.*, )?client_id =`)
	writesRows     = regexp.MustCompile(`(?is)^(insert into|update|delete from) (\w+)`)
)

// unfit returns what Citus would refuse in a migration, or do halfway.
func unfit(text string, before firstColumns) (problems []string) {
	first, made := firstColumns{}, firstColumns{}
	for table, column := range before {
		first[table] = column
	}
	made.learn(text)
	for table, column := range made {
		first[table] = column
	}
	for _, c := range commandsOf(text) {
		say := func(problem string) { problems = append(problems, problem+": "+c) }
		if copiesTable.MatchString(c) || renamesTable.MatchString(c) {
			say("a table that is filled or renamed is not in its place")
		}
		if m := createsTable.FindStringSubmatch(c); m != nil {
			for _, problem := range unfitTable(m[1], m[2], first) {
				say(problem)
			}
		}
		if m := altersTable.FindStringSubmatch(c); m != nil {
			for _, problem := range unfitChange(m[1], m[2], first) {
				say(problem)
			}
		}
		if m := uniqueIndex.FindStringSubmatch(c); m != nil && first.distributed(m[1]) && !names(m[2], "client_id") {
			say("a unique index of a distributed table needs client_id")
		}
		if m := writesRows.FindStringSubmatch(c); m != nil {
			if made.distributed(m[2]) {
				say("a distributed table that is filled by its own migration leaves its rows on the coordinator")
			}
			if volatile.MatchString(c) {
				say("a function that is volatile is refused")
			}
			if movesClient.MatchString(c) {
				say("a row cannot change its client")
			}
		}
	}
	return problems
}

// unfitTable checks a new table.
func unfitTable(table, body string, first firstColumns) (problems []string) {
	distributed, identified := first.distributed(table), false
	for _, part := range partsOf(body) {
		keys := ""
		if m := uniqueKey.FindStringSubmatch(part); m != nil {
			keys = m[1]
		} else if m := uniqueColumn.FindStringSubmatch(part); m != nil {
			keys = m[1]
		}
		if keys != "" {
			identified = true
			if distributed && !names(keys, "client_id") {
				problems = append(problems, "a key of a distributed table needs client_id")
			}
		}
		problems = append(problems, unfitReference(table, part, first)...)
	}
	if distributed && !identified {
		problems = append(problems, "a distributed table without a key cannot be moved")
	}
	return problems
}

// unfitChange checks ALTER TABLE.
func unfitChange(table, changes string, first firstColumns) (problems []string) {
	parts := partsOf(changes)
	for _, part := range parts {
		switch {
		case addsConstraint.MatchString(part):
			if len(parts) > 1 {
				problems = append(problems, "ADD CONSTRAINT has to be alone")
			}
			if m := uniqueKey.FindStringSubmatch(part); m != nil && first.distributed(table) && !names(m[1], "client_id") {
				problems = append(problems, "a key of a distributed table needs client_id")
			}
			problems = append(problems, unfitReference(table, part, first)...)
		case addsColumn.MatchString(part) && ofColumn.MatchString(part):
			problems = append(problems, "ADD COLUMN takes no constraint: add it by a command of its own")
		case neverAlters.MatchString(part):
			problems = append(problems, "this kind of change is refused")
		}
	}
	return problems
}

// unfitReference checks a foreign key: it leads to the same place, or to a table that
// each node has.
func unfitReference(table, part string, first firstColumns) []string {
	m := references.FindStringSubmatch(part)
	if m == nil || strings.HasSuffix(m[1], "_moves") || first.distributed(table) == first.distributed(m[1]) {
		return nil
	}
	return []string{"a foreign key cannot lead from " + table + " to " + m[1]}
}

func names(list, column string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(c string) bool { return strings.TrimSpace(c) == column })
}

var comment = regexp.MustCompile(`--[^\n]*`)
var space = regexp.MustCompile(`\s+`)
var body = regexp.MustCompile(`(?s)\$\$.*?\$\$`)

// commandsOf returns the commands of a script on one line each, without comments and
// the bodies of functions.
func commandsOf(text string) (out []string) {
	text = body.ReplaceAllString(comment.ReplaceAllString(text, ""), "''")
	for _, c := range strings.Split(text, ";") {
		if c = strings.TrimSpace(space.ReplaceAllString(c, " ")); c != "" {
			out = append(out, c)
		}
	}
	return out
}

// partsOf splits a list at the commas that are in no parentheses.
func partsOf(list string) (parts []string) {
	depth, begin := 0, 0
	for i, c := range list {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(list[begin:i]))
			begin = i + 1
		}
	}
	return append(parts, strings.TrimSpace(list[begin:]))
}
