package db

import (
	"fmt"
	"regexp"
	"strings"
)

var joinedClient = regexp.MustCompile(`\b\w+\.client_id = \w+\.client_id\b`)

// OfClient names the client in each join and subquery of a text, by the placeholder that
// holds it. Citus sends a statement to one node only if the client of each table is said;
// otherwise it asks all nodes, and refuses some statements.
func OfClient(text, client string) string {
	return joinedClient.ReplaceAllStringFunc(text, func(join string) string {
		column, _, _ := strings.Cut(join, " = ")
		return column + " = " + client
	})
}

var (
	clientOfArrays = regexp.MustCompile(`(client_id = )(ANY\(ARRAY\[\w+\.\w+\]\)|\w+\.\w+)`)
	expectsRows    = regexp.MustCompile(`(?s)^WITH changed AS \((.*?)\s+RETURNING 1\)\s+SELECT till_expect_rows\(.*$`)
)

// DefineByClient defines a statement over arrays that Citus takes for several rows of one
// client at once. The argument n is the client: it is one value there, named wherever a
// table has it. An INSERT reads the client's head, by which Citus sees that one shard can
// run all of it. The nodes do not have our function that counts the rows: they are counted
// here.
func DefineByClient(n int, s SQL) *SQL {
	client := fmt.Sprintf("$%d", n)
	text := expectsRows.ReplaceAllString(s.Postgres, "$1")
	replace := func(old, new string) {
		if !strings.Contains(text, old) {
			panic(fmt.Sprintf("db: the text of %s has no %q", s.Name, old))
		}
		text = strings.Replace(text, old, new, 1)
	}
	replace(fmt.Sprintf("unnest(%s::bytea[]) AS a%d", client, n), fmt.Sprintf("%s::bytea AS a%d", client, n))
	if strings.HasPrefix(text, "INSERT") {
		if strings.Contains(text, "ON CONFLICT") { // nobody would see that a head is missing
			panic("db: " + s.Name + " decides conflicts")
		}
		replace(fmt.Sprintf("u.a%d,", n), "c.client_id,")
		replace("FROM (SELECT", "FROM client_heads AS c, (SELECT")
		replace(") AS u", ") AS u WHERE c.client_id = "+client)
	}
	s.Client, s.OneClient = n, clientOfArrays.ReplaceAllString(text, "${1}$"+client)
	return Define(s)
}
