package schema

import (
	"strings"
	"testing"
)

// The first column decides where a table is, and a table comes behind those that it
// refers to. Tables that refer to each other end the order instead of hanging it.
func TestPlaces(t *testing.T) {
	t.Parallel()
	tables := []table{{name: "a_lines", first: "client_id"}, {name: "b_ring", first: "client_id"}, {name: "c_ring", first: "client_id"},
		{name: "clients", first: "client_id"}, {name: "payment_moves", first: "from_status"}, {name: "people", first: "person_id"}, {name: "wallets", first: "client_id"}}
	refersTo := map[string][]string{"a_lines": {"wallets"}, "b_ring": {"c_ring"}, "c_ring": {"b_ring"}}
	for _, t := range tables {
		if t.name != "clients" {
			refersTo[t.name] = append(refersTo[t.name], "clients")
		}
	}
	var got []string
	for _, t := range inOrder(tables, refersTo) {
		got = append(got, t.place(7))
	}
	want := []string{
		`SELECT create_distributed_table('clients', 'client_id', colocate_with => 'none', shard_count => 7)`,
		`SELECT create_reference_table('payment_moves')`,
		`SELECT citus_add_local_table_to_metadata('people')`,
		`SELECT create_distributed_table('wallets', 'client_id', colocate_with => 'clients')`,
		`SELECT create_distributed_table('a_lines', 'client_id', colocate_with => 'clients')`,
		`SELECT create_distributed_table('b_ring', 'client_id', colocate_with => 'clients')`,
		`SELECT create_distributed_table('c_ring', 'client_id', colocate_with => 'clients')`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
