package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/internal/qrcode"
	"till/people"
	"till/store"
)

func newPerson() *cobra.Command {
	return cli.NewGroup("person", "Invite and manage people of the console", newPersonInvite(), newPersonList(), newPersonRoles(), newPersonDisable(), newPersonReset())
}

// defaultConsole is where till serve and till dev listen unless told otherwise.
// Passkeys need the name: browsers refuse them at IP addresses.
const defaultConsole = "http://localhost:8080/v1"

// linkFlags are those of commands that print a link.
type linkFlags struct {
	baseURL, database string
	asJSON            bool
}

func (f *linkFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.baseURL, "base-url", defaultConsole, "the URL at which the service is reached, ending in /v1, as for 'till serve'")
	cli.AddDatabase(cmd, &f.database)
	cli.AddJSON(cmd, &f.asJSON)
}

// link returns the address behind which a token is spent.
func (f *linkFlags) link(token string) (string, error) {
	u, err := url.Parse(f.baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("--base-url must look like https://pay.example.com/v1")
	}
	return u.Scheme + "://" + u.Host + "/console/join/" + token, nil
}

// print writes an invitation with its link, as text also as a QR code.
func (f *linkFlags) print(w io.Writer, inv *people.Invitation, token string) error {
	link, err := f.link(token)
	if err != nil {
		return err
	}
	if f.asJSON {
		return cli.PrintJSON(w, map[string]any{"link": link, "kind": inv.Kind, "name": inv.Name, "role": cli.TextOrNull(string(inv.Role)), "expires_at": inv.ExpiresAt.String()})
	}
	code, err := qrcode.Blocks(link)
	if err != nil {
		return err
	}
	_, err = cli.Printf(w, "%s\n\n  %s\n\nThe link works once, until %s. It is not shown again.\nWhoever has it gets in: send it to %s only.\n", cli.TrustedText(code), link, inv.ExpiresAt, inv.Name)
	return err
}

// withPeople runs f with the people of a database. What they sign in with needs
// the installation's secret, and no command touches it.
func withPeople(ctx context.Context, database string, f func(p *people.People, s *store.Store) error) error {
	return cli.WithDatabase(ctx, database, func(s *store.Store) error {
		p, err := people.New(people.Config{Store: s})
		if err != nil {
			return err
		}
		return personError(f(p, s))
	})
}

// personError says in words what the people refuse.
func personError(err error) error {
	r := people.RefusalOf(err)
	if r == nil {
		return err
	}
	text := map[people.RefusalCode]string{
		people.NameInvalid:   "--name must name a person, in at most 64 plain characters without a colon",
		people.LoginInvalid:  "--login must be an e-mail address, or a phone number with its country code, +242…",
		people.ValueInvalid:  "there is no such role there; 'till person roles' lists them",
		people.TooMany:       "there are too many people or open invitations there",
		people.AlreadyMember: "somebody with this login has a role there already",
		people.PersonUnknown: "there is no such person there; 'till person list' lists them",
	}[r.Code]
	if text == "" {
		return err
	}
	return till.Errorf(till.CodeValidationFailed, "%s", text)
}

// placeFlags name a client or the house.
type placeFlags struct {
	client string
	house  bool
}

func (f *placeFlags) id() (till.ID, error) {
	if f.client == "" {
		return till.House, nil
	}
	return cli.ParseID(f.client, "client")
}

func newPersonInvite() *cobra.Command {
	var links linkFlags
	var client, role, house, name, login string
	cmd := &cobra.Command{
		Use:   "invite",
		Short: "Print a link that lets a person into the console",
		Long: `Print a link, and its QR code, that gives a person a role with a client or with
the house, which runs the installation. Use it for the first person, who then
invites others on the page of people. The link works once, within 72 hours; the
person chooses a password or a passkey behind it.`,
		Example: `  till person invite --house admin --name "Awa N."
  till person invite --client 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --role owner --name "Brice K." --login +242061234567`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			place := till.House
			if client != "" {
				var err error
				if place, err = cli.ParseID(client, "client"); err != nil {
					return err
				}
				house = role
			}
			if _, err := links.link(""); err != nil {
				return err
			}
			return withPeople(cmd.Context(), links.database, func(p *people.People, _ *store.Store) error {
				inv, token, err := p.InviteAs(cmd.Context(), cli.Actor(), place, till.Role(house), name, login)
				if err != nil {
					return err
				}
				return links.print(cmd.OutOrStdout(), inv, token)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&house, "house", "", "a role of the house: "+roleList(till.HouseRoles))
	f.StringVar(&client, "client", "", "the client's id, for a role of its staff")
	f.StringVar(&role, "role", "", "with --client: "+roleList(till.StaffRoles))
	f.StringVar(&name, "name", "", "the person's name (required)")
	f.StringVar(&login, "login", "", "the e-mail address or phone number to sign in with (default the person chooses)")
	cmd.MarkFlagRequired("name")
	cmd.MarkFlagsOneRequired("house", "client")
	cmd.MarkFlagsMutuallyExclusive("house", "client")
	cmd.MarkFlagsRequiredTogether("client", "role")
	links.add(cmd)
	return cmd
}

func roleList(roles []till.Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

// findPerson returns the person with a login or an id.
func findPerson(ctx context.Context, s *store.Store, text string) (person *store.Person, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		if id, notID := till.ParseID(text); notID == nil {
			person, err = tx.Person(ctx, id)
		} else {
			person, err = tx.PersonByLogin(ctx, strings.ToLower(text))
		}
		return err
	})
	if err == nil && person == nil {
		err = till.Errorf(till.CodeValidationFailed, "nobody has the login or the id %q; 'till person list' lists the people", text)
	}
	return person, err
}

func newPersonDisable() *cobra.Command {
	var database string
	var enable, asJSON bool
	cmd := &cobra.Command{
		Use:   "disable LOGIN",
		Short: "Keep a person out of the console",
		Long: `Keep a person from signing in anywhere, and end their sessions at once, on all
instances. Use it when somebody leaves, or when their phone is stolen. --enable
lets them in again, with what they had.`,
		Example: `  till person disable brice@example.com`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPeople(cmd.Context(), database, func(p *people.People, s *store.Store) error {
				person, err := findPerson(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				if err := p.SetDisabledAs(cmd.Context(), cli.Actor(), person.ID, !enable); err != nil {
					return err
				}
				if asJSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"person_id": person.ID.String(), "disabled": !enable})
				}
				state := "disabled"
				if enable {
					state = "enabled"
				}
				_, err = cli.Printf(cmd.OutOrStdout(), "%s: %s\n", person.Name, state)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&enable, "enable", false, "let the person in again")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

func newPersonReset() *cobra.Command {
	var links linkFlags
	cmd := &cobra.Command{
		Use:   "reset LOGIN",
		Short: "Print a link that lets a person back in",
		Long: `Print a link, and its QR code, behind which a person sets a new password or
passkey. The old ones, TOTP and the recovery codes end when it is used. Use it
when somebody has lost what they sign in with. The link works once, within 24
hours.`,
		Example: `  till person reset awa@example.com`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := links.link(""); err != nil {
				return err
			}
			return withPeople(cmd.Context(), links.database, func(p *people.People, s *store.Store) error {
				person, err := findPerson(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				inv, token, err := p.ResetAs(cmd.Context(), cli.Actor(), till.House, person.ID)
				if err != nil {
					return err
				}
				return links.print(cmd.OutOrStdout(), inv, token)
			})
		},
	}
	links.add(cmd)
	return cmd
}
