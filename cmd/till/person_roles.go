package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/people"
	"till/store"
	"till/store/access"
)

// member is a person and their roles.
type member struct {
	*till.Person
	of []till.Membership
}

func newPersonList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all people of the console",
		Long: `List all people with their roles, what they sign in with and when they were last
seen. Use it to see who can get in, and to find a login.`,
		Example: `  till person list`,
		Args:    cobra.NoArgs,
	}
	return onPeople(cmd, func(c *cli.Call, _ *people.People) error {
		var all []member
		err := eachPerson(c.Context(), c.Store, func(p *till.Person, of []till.Membership) { all = append(all, member{p, of}) })
		if err != nil {
			return err
		}
		return cli.List(c, all, member.object, memberColumns)
	})
}

// eachPerson calls f with each person and their roles, a page at a time.
func eachPerson(ctx context.Context, s *store.Store, f func(p *till.Person, of []till.Membership)) error {
	const page = 200
	for after := (till.ID{}); ; {
		var all []*till.Person
		var roles [][]till.Membership
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			roles = nil
			if all, err = access.People(ctx, tx, after, page); err != nil {
				return err
			}
			for _, p := range all {
				of, _, err := access.Memberships(ctx, tx, p.ID)
				if err != nil {
					return err
				}
				roles = append(roles, of)
			}
			return nil
		})
		if err != nil || len(all) == 0 {
			return err
		}
		for i, p := range all {
			f(p, roles[i])
			after = p.ID
		}
	}
}

func (m member) object() cli.Object {
	role := func(r till.Membership) cli.Object { return cli.Object{"client_id", r.Client, "role", r.Role} } // without a client: of the installation
	return cli.Object{"person_id", m.ID, "login", m.Login, "name", m.Name, "roles", cli.Objects(m.of, role), "password", m.HasPassword, "totp", m.HasTOTP,
		"passkeys", m.Passkeys, "disabled", !m.DisabledAt.IsZero(), "seen_at", m.SeenAt}
}

var memberColumns = cli.Columns[member]{
	Heads: []any{"LOGIN", "STATE", "SIGNS IN WITH", "LAST SEEN", "NAME", "ROLES"},
	Row: func(m member) []any {
		state := "active"
		if !m.DisabledAt.IsZero() {
			state = "disabled"
		}
		return []any{m.Login, state, m.factors(), cli.TimeOr(m.SeenAt, "never"), m.Name, m.roles()}
	},
}

func (m member) roles() string {
	var words []string
	for _, r := range m.of {
		if r.Client.IsZero() {
			words = append(words, string(r.Role)+" (house)")
		} else {
			words = append(words, string(r.Role)+" ("+r.Client.String()+")")
		}
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}

func (m member) factors() string {
	var words []string
	if m.HasPassword {
		words = append(words, "password")
	}
	if m.HasTOTP {
		words = append(words, "TOTP")
	}
	if m.Passkeys > 0 {
		words = append(words, cli.Count(m.Passkeys, "passkey", "passkeys"))
	}
	return cmp.Or(strings.Join(words, ", "), "nothing")
}

func newPersonRoles() *cobra.Command {
	place := till.House
	var set string
	var house, remove bool
	cmd := &cobra.Command{
		Use:   "roles [LOGIN]",
		Short: "Show what roles may do, or change a person's role",
		Long: `Without a login: show what each role may do. With a login: show a person's roles
or, with --client or --house, change one with --set, or take it away with
--remove. Use it when nobody else can change it on the page of people. A change
ends the person's sessions.`,
		Example: `  till person roles
  till person roles brice@example.com --client 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --set accountant`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	cli.AddAnyClient(cmd, &place, "the client whose role is changed, by its id")
	f.BoolVar(&house, "house", false, "change a role of the house")
	f.StringVar(&set, "set", "", "the new role: "+roleList(till.StaffRoles)+"; of the house "+roleList(till.HouseRoles))
	f.BoolVar(&remove, "remove", false, "take the role away")
	cmd.MarkFlagsMutuallyExclusive("client", "house")
	cmd.MarkFlagsMutuallyExclusive("set", "remove")
	change := func(c *cli.Call, p *people.People) error {
		person, err := findPerson(c, c.Args[0])
		if err != nil {
			return err
		}
		if set != "" || remove {
			if place.IsZero() && !house {
				return fmt.Errorf("name the place of the role with --client or --house")
			}
			if err := p.SetRoleAs(c.Context(), cli.Actor(), place, person.ID, till.Role(set)); err != nil {
				return err
			}
		}
		m := member{Person: &person.Person}
		err = c.View(func(tx *store.Tx) (err error) {
			m.of, _, err = access.Memberships(c.Context(), tx, person.ID)
			return err
		})
		if err != nil {
			return err
		}
		return cli.List(c, []member{m}, member.object, memberColumns)
	}
	return cli.MayOpen(cmd, func(c *cli.Call) error {
		if len(c.Args) == 0 {
			return printRoles(c)
		}
		return c.Open(func(c *cli.Call) error { return withPeople(c, change) })
	})
}

// grantWords are how the table of roles shows grants.
var grantWords = map[people.Grant]string{
	people.None: "-", people.Full: "yes", people.Recent: "48 hours", people.TestOnly: "test only", people.NoPayoutKeys: "no payouts",
}

// printRoles prints what each role may do.
func printRoles(c *cli.Call) error {
	rule := func(r people.Rule) cli.Object {
		grants := map[till.Role]string{}
		for role, g := range r.Grants {
			grants[role] = grantWords[g]
		}
		return cli.Object{"permission", r.Permission, "fresh_proof", r.Fresh, "grants", grants}
	}
	all := append(cli.Objects(people.StaffRules, rule), cli.Objects(people.HouseRules, rule)...)
	return c.Show(cli.Object{"items", all}, func(w io.Writer) error {
		err := printRules(w, people.StaffRules, till.StaffRoles)
		cli.PrintLine(w, "")
		return errors.Join(err, printRules(w, people.HouseRules, till.HouseRoles))
	})
}

func printRules(w io.Writer, rules []people.Rule, roles []till.Role) error {
	return cli.Table(w, func(row func(...any)) {
		head := []any{"MAY"}
		for _, r := range roles {
			head = append(head, strings.ToUpper(string(r)))
		}
		row(append(head, "FRESH PROOF")...)
		for _, rule := range rules {
			cells := []any{string(rule.Permission)}
			for _, r := range roles {
				cells = append(cells, grantWords[rule.Grants[r]])
			}
			fresh := "-"
			if rule.Fresh {
				fresh = "yes"
			}
			row(append(cells, fresh)...)
		}
	})
}
