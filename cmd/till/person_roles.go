package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/people"
	"till/store"
)

// personJSON is a person as the commands print one.
type personJSON struct {
	PersonID string           `json:"person_id"`
	Login    string           `json:"login"`
	Name     string           `json:"name"`
	Roles    []membershipJSON `json:"roles"`
	Password bool             `json:"password"`
	TOTP     bool             `json:"totp"`
	Passkeys int              `json:"passkeys"`
	Disabled bool             `json:"disabled"`
	SeenAt   *string          `json:"seen_at"`
}

type membershipJSON struct {
	ClientID *string   `json:"client_id"` // null: the house
	Role     till.Role `json:"role"`
}

func newPersonList() *cobra.Command {
	var database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all people of the console",
		Long: `List all people with their roles, what they sign in with and when they were last
seen. Use it to see who can get in, and to find a login.`,
		Example: `  till person list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withPeople(cmd.Context(), database, func(_ *people.People, s *store.Store) error {
				items := []personJSON{}
				err := eachPerson(cmd.Context(), s, func(p *till.Person, of []till.Membership) {
					items = append(items, personOut(p, of))
				})
				if err != nil {
					return err
				}
				return printPeople(cmd.OutOrStdout(), items, asJSON)
			})
		},
	}
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// eachPerson calls f with each person and their roles, a page at a time.
func eachPerson(ctx context.Context, s *store.Store, f func(p *till.Person, of []till.Membership)) error {
	const page = 200
	for after := (till.ID{}); ; {
		var all []*till.Person
		var roles [][]till.Membership
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			roles = nil
			if all, err = tx.People(ctx, after, page); err != nil {
				return err
			}
			for _, p := range all {
				of, _, err := tx.Memberships(ctx, p.ID)
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

func personOut(p *till.Person, of []till.Membership) personJSON {
	out := personJSON{PersonID: p.ID.String(), Login: p.Login, Name: p.Name, Roles: []membershipJSON{}, Password: p.HasPassword, TOTP: p.HasTOTP,
		Passkeys: p.Passkeys, Disabled: !p.DisabledAt.IsZero(), SeenAt: cli.TimeOrNull(p.SeenAt)}
	for _, m := range of {
		out.Roles = append(out.Roles, membershipJSON{cli.IDOrNull(m.Client), m.Role})
	}
	return out
}

func (p *personJSON) roles() string {
	var words []string
	for _, m := range p.Roles {
		if m.ClientID == nil {
			words = append(words, string(m.Role)+" (house)")
		} else {
			words = append(words, string(m.Role)+" ("+*m.ClientID+")")
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

func (p *personJSON) factors() string {
	var words []string
	if p.Password {
		words = append(words, "password")
	}
	if p.TOTP {
		words = append(words, "TOTP")
	}
	if p.Passkeys > 0 {
		words = append(words, cli.Count(p.Passkeys, "passkey", "passkeys"))
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

func printPeople(w io.Writer, items []personJSON, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w, map[string]any{"items": items})
	}
	return cli.Table(w, func(row func(...any)) {
		row("LOGIN", "STATE", "SIGNS IN WITH", "LAST SEEN", "NAME", "ROLES")
		for _, p := range items {
			state, seen := "active", "never"
			if p.Disabled {
				state = "disabled"
			}
			if p.SeenAt != nil {
				seen = *p.SeenAt
			}
			row(p.Login, state, p.factors(), seen, p.Name, p.roles())
		}
	})
}

func newPersonRoles() *cobra.Command {
	var place placeFlags
	var set, database string
	var remove, asJSON bool
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
		RunE: func(cmd *cobra.Command, args []string) error {
			w := cmd.OutOrStdout()
			if len(args) == 0 {
				return printRoles(w, asJSON)
			}
			id, err := place.id()
			if err != nil {
				return err
			}
			return withPeople(cmd.Context(), database, func(p *people.People, s *store.Store) error {
				person, err := findPerson(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				if set != "" || remove {
					if place.client == "" && !place.house {
						return fmt.Errorf("name the place of the role with --client or --house")
					}
					if err := p.SetRoleAs(cmd.Context(), cli.Actor(), id, person.ID, till.Role(set)); err != nil {
						return err
					}
				}
				var of []till.Membership
				err = s.View(cmd.Context(), func(tx *store.Tx) (err error) {
					of, _, err = tx.Memberships(cmd.Context(), person.ID)
					return err
				})
				if err != nil {
					return err
				}
				return printPeople(w, []personJSON{personOut(&person.Person, of)}, asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&place.client, "client", "", "the client whose role is changed, by its id")
	f.BoolVar(&place.house, "house", false, "change a role of the house")
	f.StringVar(&set, "set", "", "the new role: "+roleList(till.StaffRoles)+"; of the house "+roleList(till.HouseRoles))
	f.BoolVar(&remove, "remove", false, "take the role away")
	cmd.MarkFlagsMutuallyExclusive("client", "house")
	cmd.MarkFlagsMutuallyExclusive("set", "remove")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// grantWords are how the table of roles shows grants.
var grantWords = map[people.Grant]string{
	people.None: "-", people.Full: "yes", people.Recent: "48 hours", people.TestOnly: "test only", people.NoPayoutKeys: "no payouts",
}

// printRoles prints what each role may do.
func printRoles(w io.Writer, asJSON bool) error {
	if asJSON {
		type ruleJSON struct {
			Permission people.Permission    `json:"permission"`
			Fresh      bool                 `json:"fresh_proof"`
			Grants     map[till.Role]string `json:"grants"`
		}
		out := []ruleJSON{}
		for _, rules := range [][]people.Rule{people.StaffRules, people.HouseRules} {
			for _, r := range rules {
				grants := map[till.Role]string{}
				for role, g := range r.Grants {
					grants[role] = grantWords[g]
				}
				out = append(out, ruleJSON{r.Permission, r.Fresh, grants})
			}
		}
		return cli.PrintJSON(w, map[string]any{"items": out})
	}
	for i, family := range []struct {
		rules []people.Rule
		roles []till.Role
	}{{people.StaffRules, till.StaffRoles}, {people.HouseRules, till.HouseRoles}} {
		if i > 0 {
			cli.PrintLine(w, "")
		}
		err := cli.Table(w, func(row func(...any)) {
			head := []any{"MAY"}
			for _, r := range family.roles {
				head = append(head, strings.ToUpper(string(r)))
			}
			row(append(head, "FRESH PROOF")...)
			for _, rule := range family.rules {
				cells := []any{string(rule.Permission)}
				for _, r := range family.roles {
					cells = append(cells, grantWords[rule.Grants[r]])
				}
				fresh := "-"
				if rule.Fresh {
					fresh = "yes"
				}
				row(append(cells, fresh)...)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
