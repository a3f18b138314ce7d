package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/internal/qrcode"
	"till/people"
	"till/store"
	"till/store/access"
)

func newPerson() *cobra.Command {
	return cli.NewGroup("person", "Invite and manage people of the console", newPersonInvite(), newPersonList(), newPersonRoles(), newPersonDisable(), newPersonReset())
}

// defaultConsole is where till serve and till dev listen by default.
// Passkeys need the name: browsers refuse them at IP addresses.
const defaultConsole = "http://localhost:8080/v1"

// addBaseURL adds the --base-url of commands that print a link.
func addBaseURL(cmd *cobra.Command, link *linkTo) {
	usage := "the URL at which the service is reached, ending in /v1, as for 'till serve'"
	cmd.Flags().StringVar((*string)(link), "base-url", defaultConsole, usage)
}

// linkTo is the URL at which the service is reached.
type linkTo string

// link returns the address behind which a token is spent.
func (f linkTo) link(token string) (string, error) {
	u, err := url.Parse(string(f))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("--base-url must look like https://pay.example.com/v1")
	}
	return u.Scheme + "://" + u.Host + "/console/join/" + token, nil
}

// print writes an invitation with its link, as text also as a QR code.
func (f linkTo) print(c *cli.Call, inv *people.Invitation, token string) error {
	link, err := f.link(token)
	if err != nil {
		return err
	}
	code, err := qrcode.Blocks(link)
	if err != nil {
		return err
	}
	return c.Say(cli.Object{"expires_at", inv.ExpiresAt, "kind", inv.Kind, "link", link, "name", inv.Name, "role", cli.OrNull(inv.Role)},
		"%s\n\n  %s\n\nThe link works once, until %s. It is not shown again.\nWhoever has it gets in: send it to %s only.\n", cli.TrustedText(code), link, inv.ExpiresAt, inv.Name)
}

// onPeople makes a command that runs on the people of a database. What they sign in with
// needs the installation's secret, and no command touches it.
func onPeople(cmd *cobra.Command, run func(c *cli.Call, p *people.People) error) *cobra.Command {
	return cli.OnDatabase(cmd, func(c *cli.Call) error { return withPeople(c, run) })
}

func withPeople(c *cli.Call, run func(c *cli.Call, p *people.People) error) error {
	p, err := people.New(people.Config{Store: c.Store})
	if err != nil {
		return err
	}
	return personError(run(c, p))
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

func newPersonInvite() *cobra.Command {
	var links linkTo
	place := till.House
	var role, house, name, login string
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
	}
	f := cmd.Flags()
	f.StringVar(&house, "house", "", "a role of the house: "+roleList(till.HouseRoles))
	cli.AddClient(cmd, &place, "the client's id, for a role of its staff")
	f.StringVar(&role, "role", "", "with --client: "+roleList(till.StaffRoles))
	f.StringVar(&name, "name", "", "the person's name (required)")
	f.StringVar(&login, "login", "", "the e-mail address or phone number to sign in with (default the person chooses)")
	cli.Require(cmd, "name")
	cmd.MarkFlagsOneRequired("house", "client")
	cmd.MarkFlagsMutuallyExclusive("house", "client")
	cmd.MarkFlagsRequiredTogether("client", "role")
	addBaseURL(cmd, &links)
	return onPeople(cmd, func(c *cli.Call, p *people.People) error {
		if !place.IsZero() {
			house = role
		}
		if _, err := links.link(""); err != nil {
			return err
		}
		inv, token, err := p.InviteAs(c.Context(), cli.Actor(), place, till.Role(house), name, login)
		if err != nil {
			return err
		}
		return links.print(c, inv, token)
	})
}

func roleList(roles []till.Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

// findPerson returns the person with a login or an id.
func findPerson(c *cli.Call, text string) (person *access.Person, err error) {
	err = c.View(func(tx *store.Tx) error {
		if id, notID := till.ParseID(text); notID == nil {
			person, err = access.PersonByID(c.Context(), tx, id)
		} else {
			person, err = access.PersonByLogin(c.Context(), tx, strings.ToLower(text))
		}
		return err
	})
	if err == nil && person == nil {
		err = till.Errorf(till.CodeValidationFailed, "nobody has the login or the id %q; 'till person list' lists the people", text)
	}
	return person, err
}

func newPersonDisable() *cobra.Command {
	var enable bool
	cmd := &cobra.Command{
		Use:   "disable LOGIN",
		Short: "Keep a person out of the console",
		Long: `Keep a person from signing in anywhere, and end their sessions at once, on all
instances. Use it when somebody leaves, or when their phone is stolen. --enable
lets them in again, with what they had.`,
		Example: `  till person disable brice@example.com`,
		Args:    cli.OneArg,
	}
	cmd.Flags().BoolVar(&enable, "enable", false, "let the person in again")
	return onPeople(cmd, func(c *cli.Call, p *people.People) error {
		person, err := findPerson(c, c.Args[0])
		if err != nil {
			return err
		}
		if err := p.SetDisabledAs(c.Context(), cli.Actor(), person.ID, !enable); err != nil {
			return err
		}
		state := "disabled"
		if enable {
			state = "enabled"
		}
		return c.Say(cli.Object{"disabled", !enable, "person_id", person.ID}, "%s: %s\n", person.Name, state)
	})
}

func newPersonReset() *cobra.Command {
	var links linkTo
	cmd := &cobra.Command{
		Use:   "reset LOGIN",
		Short: "Print a link that lets a person back in",
		Long: `Print a link, and its QR code, behind which a person sets a new password or
passkey. The old ones, TOTP and the recovery codes end when it is used. Use it
when somebody has lost what they sign in with. The link works once, within 24
hours.`,
		Example: `  till person reset awa@example.com`,
		Args:    cli.OneArg,
	}
	addBaseURL(cmd, &links)
	return onPeople(cmd, func(c *cli.Call, p *people.People) error {
		if _, err := links.link(""); err != nil {
			return err
		}
		person, err := findPerson(c, c.Args[0])
		if err != nil {
			return err
		}
		inv, token, err := p.ResetAs(c.Context(), cli.Actor(), till.House, person.ID)
		if err != nil {
			return err
		}
		return links.print(c, inv, token)
	})
}
