package store_test

import (
	"regexp"
	"strings"
	"testing"

	"till/internal/db"
)

// joinedClient finds a join that does not name the client.
var joinedClient = regexp.MustCompile(`\b\w+\.client_id = \w+\.client_id\b`)

// overAllClients are the reads of verify that are about more than one client.
var overAllClients = map[string]bool{"verify.selectNextOwner": true, "verify.selectLogLengths": true, "verify.preferIndexes": true, "verify.overdrawnSuspense": true}

// Each slice that verify reads of a client is sent to the client's node alone: it names the
// client at each table, and joins nothing that is on the coordinator. Otherwise Citus copies
// whole tables of all clients for each slice. TestCitusPlansEveryStatement asks Citus itself.
func TestVerifyNamesTheClientAtEachTable(t *testing.T) {
	t.Parallel()
	n := 0
	for _, q := range db.Statements() {
		if !strings.HasPrefix(q.Name, "verify.") || overAllClients[q.Name] {
			continue
		}
		n++
		text := q.Text(db.Citus)
		if join := joinedClient.FindString(text); join != "" {
			t.Errorf("%s has a join that does not name the client: %s", q.Name, join)
		}
		if strings.Contains(text, "operator_receipts") {
			t.Errorf("%s reads receipts, which are on the coordinator, together with what is on a node", q.Name)
		}
	}
	if n < 20 {
		t.Errorf("only %d statements", n)
	}
}
