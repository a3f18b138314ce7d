package store

import (
	"regexp"
	"strings"
)

var joinedClient = regexp.MustCompile(`\b\w+\.client_id = \w+\.client_id\b`)

// ofClient names the client in each join and subquery of a text, by the placeholder that
// holds it. Citus sends a statement to one node only if the client of each table is said;
// otherwise it asks all nodes, and refuses some statements.
func ofClient(text, client string) string {
	return joinedClient.ReplaceAllStringFunc(text, func(join string) string {
		column, _, _ := strings.Cut(join, " = ")
		return column + " = " + client
	})
}
