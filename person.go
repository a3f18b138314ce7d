package till

import (
	"slices"
	"strings"
)

// Person is somebody who signs in to the console.
type Person struct {
	ID         ID
	Login      string // an e-mail address in lower case, or a phone number as "+242061234567"
	Name       string
	Language   string // "en" or "fr"
	Zone       string // an IANA time zone; "" means the merchant's
	Theme      string // "light", "dark", or "" for the system's
	NoKeys     bool   // keyboard shortcuts are off
	CreatedAt  Time
	DisabledAt Time // zero: may sign in
	SeenAt     Time // zero: never; kept to the minute

	// What the person can sign in with.
	HasPassword   bool
	HasTOTP       bool
	Passkeys      int
	RecoveryCodes int // that are left
}

// HasFactor reports whether the person has a second factor: a passkey, which
// is both factors in one, or TOTP.
func (p *Person) HasFactor() bool { return p.HasTOTP || p.Passkeys > 0 }

// Actor returns how the audit log names the person.
func (p *Person) Actor() string { return personMark + p.ID.String() + " " + p.Name }

// Role is what a person is for a client or for the installation.
type Role string

// The roles of a client's staff.
const (
	RoleOwner      Role = "owner"
	RoleAccountant Role = "accountant"
	RoleCashier    Role = "cashier"
	RoleDeveloper  Role = "developer"
	RoleViewer     Role = "viewer"
)

// The roles of the installation's staff.
const (
	RoleAdmin    Role = "admin"
	RoleFinance  Role = "finance"
	RoleSupport  Role = "support"
	RoleEngineer Role = "engineer"
	RoleAuditor  Role = "auditor"
)

// StaffRoles and HouseRoles list every role, in the order that pages show.
var (
	StaffRoles = []Role{RoleOwner, RoleAccountant, RoleCashier, RoleDeveloper, RoleViewer}
	HouseRoles = []Role{RoleAdmin, RoleFinance, RoleSupport, RoleEngineer, RoleAuditor}
)

// OfHouse reports whether r is a role of the installation's staff.
func (r Role) OfHouse() bool { return slices.Contains(HouseRoles, r) }

// Valid reports whether r is a role with this client; the zero client is the
// installation.
func (r Role) Valid(client ID) bool {
	if client.IsZero() {
		return r.OfHouse()
	}
	return slices.Contains(StaffRoles, r)
}

// House is the client id under which the installation keeps its own: memberships and
// its audit log. No client has it.
var House ID

// Membership is a person's role with one client, or with the installation.
type Membership struct {
	Client    ID // House: the installation
	Person    ID
	Role      Role
	GrantedAt Time
	GrantedBy string // an actor
}

// NameOfActor returns what to show of an actor: the name of a person without
// mark and id, and any other actor as it is.
func NameOfActor(actor string) string {
	rest, person := strings.CutPrefix(actor, personMark)
	if !person {
		return actor
	}
	first, name, found := strings.Cut(rest, " ")
	if _, err := ParseID(first); err == nil && found {
		return name
	}
	return rest
}

// PersonOfActor returns the id of the person that an actor is; false if it is
// none, or one without an id.
func PersonOfActor(actor string) (ID, bool) {
	rest, person := strings.CutPrefix(actor, personMark)
	first, _, _ := strings.Cut(rest, " ")
	id, err := ParseID(first)
	return id, person && err == nil
}
