package people

import (
	"time"

	"till"
)

// Permission is something that a role may do, in one merchant or in the installation.
type Permission string

// The permissions of a merchant's staff.
const (
	Member         Permission = ""                // any membership, or the right of the installation's staff to view it
	PaymentsSee    Permission = "payments.see"    // lists, one payment, its timeline
	Collect        Permission = "collect"         // ask a customer at the counter, receipts
	LinksManage    Permission = "links.manage"    // addresses at which customers pay
	PhonesSee      Permission = "phones.see"      // a whole phone number, audited
	NotesWrite     Permission = "notes.write"     // on payments and payouts
	WalletsSee     Permission = "wallets.see"     // wallets, statements, payouts
	Export         Permission = "export"          // CSV with phones masked
	ExportPhones   Permission = "export.phones"   // CSV with whole phones
	PayoutsPropose Permission = "payouts.propose" // ask for a payout
	PayoutsApprove Permission = "payouts.approve" // approve another person's: not built yet
	RefundsPropose Permission = "refunds.propose" // ask that a payment is given back
	RefundsApprove Permission = "refunds.approve" // give one back; with refunds.propose at once, alone
	WebhooksSee    Permission = "webhooks.see"    // endpoints, events, deliveries
	WebhooksResend Permission = "webhooks.resend" // send events again
	WebhooksManage Permission = "webhooks.manage" // endpoints and their secrets
	KeysManage     Permission = "keys.manage"     // API keys
	PeopleManage   Permission = "people.manage"   // the merchant's people
	PolicySet      Permission = "policy.set"      // the merchant's rules and settings
	AuditSee       Permission = "audit.see"       // the merchant's audit log
	SandboxUse     Permission = "sandbox.use"     // handset and shop, test merchants only
)

// The permissions of the installation's staff.
const (
	ClientsLook       Permission = "house.clients.look"       // into every merchant, with one audit row a day
	ClientsManage     Permission = "house.clients.manage"     // make merchants, methods, suspend, invite an owner
	FeesPropose       Permission = "house.fees.propose"       // ask for a fee
	FeesApprove       Permission = "house.fees.approve"       // approve another person's
	CasesWork         Permission = "house.cases.work"         // take, note, close without money
	ResolvePropose    Permission = "house.resolve.propose"    // a payment's or payout's decision
	ResolveApprove    Permission = "house.resolve.approve"    // approve another person's
	HouseRefundsAsk   Permission = "house.refunds.propose"    // ask that a merchant's payment is given back
	HouseRefundsAllow Permission = "house.refunds.approve"    // give one back
	AdjustPropose     Permission = "house.adjust.propose"     // a wallet's correction
	AdjustApprove     Permission = "house.adjust.approve"     // approve another person's
	StatementsCompare Permission = "house.statements.compare" // an operator's statement with our books
	StatementsPropose Permission = "house.statements.propose" // ask to apply one
	StatementsApprove Permission = "house.statements.approve" // approve another person's
	HousePhones       Permission = "house.phones.see"         // whole phone numbers, audited
	HouseResend       Permission = "house.webhooks.resend"    // send a merchant's events again
	OperatorsSee      Permission = "house.operators.see"      // who answers, since when
	OperatorsCheck    Permission = "house.operators.check"    // credentials of a connection
	VerifyRun         Permission = "house.verify.run"         // run verify, see its report
	HousePeople       Permission = "house.people.manage"      // the installation's staff
	HouseAudit        Permission = "house.audit.see"          // the audit logs of all
)

// Grant is how far a role has a permission.
type Grant uint8

// The grants. All but None let in; Recent, TestOnly and NoPayoutKeys bound
// what for.
const (
	None         Grant = iota
	Recent             // what was created in the last RecentWindow
	TestOnly           // test merchants
	NoPayoutKeys       // keys without payouts:write and keys:manage
	Full
)

// RecentWindow is how far back Recent sees.
const RecentWindow = 48 * time.Hour

// Rule is one row of the role table.
type Rule struct {
	Permission Permission
	Fresh      bool                // the act needs fresh proof
	Grants     map[till.Role]Grant // a role that is not here has None

	// Look is the installation's permission that gives its staff this merchant permission,
	// in every merchant; "" means that none does.
	Look Permission
}

// OfHouse reports whether the rule is about the installation.
func (r *Rule) OfHouse() bool {
	_, house := houseRules[r.Permission]
	return house
}

func full(roles ...till.Role) map[till.Role]Grant {
	out := make(map[till.Role]Grant, len(roles))
	for _, r := range roles {
		out[r] = Full
	}
	return out
}

func with(grants map[till.Role]Grant, r till.Role, g Grant) map[till.Role]Grant {
	grants[r] = g
	return grants
}

const (
	owner, accountant, cashier, developer, viewer = till.RoleOwner, till.RoleAccountant, till.RoleCashier, till.RoleDeveloper, till.RoleViewer
	admin, finance, support, engineer, auditor    = till.RoleAdmin, till.RoleFinance, till.RoleSupport, till.RoleEngineer, till.RoleAuditor
)

// StaffRules is what a merchant's staff may; HouseRules what the installation's staff
// may. The page of roles and the tests are made from them.
var StaffRules = []Rule{
	{Permission: PaymentsSee, Grants: with(full(owner, accountant, developer, viewer), cashier, Recent), Look: ClientsLook},
	{Permission: Collect, Grants: with(full(owner, cashier), developer, TestOnly)},
	{Permission: LinksManage, Grants: with(full(owner, cashier), developer, TestOnly)},
	{Permission: PhonesSee, Grants: full(owner, accountant), Look: HousePhones},
	{Permission: NotesWrite, Grants: with(full(owner, accountant, developer), cashier, Recent), Look: CasesWork},
	{Permission: WalletsSee, Grants: full(owner, accountant, viewer), Look: ClientsLook},
	{Permission: Export, Grants: full(owner, accountant, developer, viewer), Look: ClientsLook},
	{Permission: ExportPhones, Fresh: true, Grants: full(owner, accountant)},
	{Permission: PayoutsPropose, Fresh: true, Grants: full(owner, accountant)},
	{Permission: PayoutsApprove, Fresh: true, Grants: full(owner, accountant)},
	// A cashier has neither: a refund by one has to wait for another person, which no refund does yet.
	{Permission: RefundsPropose, Fresh: true, Grants: full(owner, accountant), Look: HouseRefundsAsk},
	{Permission: RefundsApprove, Fresh: true, Grants: full(owner, accountant), Look: HouseRefundsAllow},
	{Permission: WebhooksSee, Grants: full(owner, developer), Look: ClientsLook},
	{Permission: WebhooksResend, Grants: full(owner, developer), Look: HouseResend},
	{Permission: WebhooksManage, Fresh: true, Grants: full(owner, developer)},
	{Permission: KeysManage, Fresh: true, Grants: with(full(owner), developer, NoPayoutKeys)},
	{Permission: PeopleManage, Fresh: true, Grants: full(owner), Look: ClientsManage},
	{Permission: PolicySet, Fresh: true, Grants: full(owner)},
	{Permission: AuditSee, Grants: full(owner, accountant), Look: HouseAudit},
	{Permission: SandboxUse, Grants: full(owner, accountant, cashier, developer, viewer)},
}

// HouseRules: see StaffRules.
var HouseRules = []Rule{
	{Permission: ClientsLook, Grants: full(admin, finance, support, auditor)},
	{Permission: ClientsManage, Fresh: true, Grants: full(admin)},
	{Permission: FeesPropose, Fresh: true, Grants: full(admin, finance)},
	{Permission: FeesApprove, Fresh: true, Grants: full(admin, finance)},
	{Permission: CasesWork, Grants: full(finance, support)},
	{Permission: ResolvePropose, Fresh: true, Grants: full(finance, support)},
	{Permission: ResolveApprove, Fresh: true, Grants: full(admin, finance)},
	{Permission: HouseRefundsAsk, Fresh: true, Grants: full(finance, support)},
	{Permission: HouseRefundsAllow, Fresh: true, Grants: full(finance)},
	{Permission: AdjustPropose, Fresh: true, Grants: full(finance)},
	{Permission: AdjustApprove, Fresh: true, Grants: full(admin, finance)},
	{Permission: StatementsCompare, Grants: full(finance, support)},
	{Permission: StatementsPropose, Fresh: true, Grants: full(finance)},
	{Permission: StatementsApprove, Fresh: true, Grants: full(admin, finance)},
	{Permission: HousePhones, Grants: full(finance, support)},
	{Permission: HouseResend, Grants: full(finance, support)},
	{Permission: OperatorsSee, Grants: full(admin, finance, support, engineer, auditor)},
	{Permission: OperatorsCheck, Fresh: true, Grants: full(admin, engineer)},
	{Permission: VerifyRun, Grants: full(admin, finance, engineer, auditor)},
	{Permission: HousePeople, Fresh: true, Grants: full(admin)},
	{Permission: HouseAudit, Grants: full(admin, finance, auditor)},
}

var staffRules, houseRules = byPermission(StaffRules), byPermission(HouseRules)

func byPermission(rules []Rule) map[Permission]*Rule {
	out := make(map[Permission]*Rule, len(rules))
	for i := range rules {
		out[rules[i].Permission] = &rules[i]
	}
	return out
}

// ByKeys reports whether a role does not have a permission itself and still gives
// what it is about to programs, by keys and endpoints that its people make: the API
// and webhooks show whole phone numbers, wallets and payouts. The page of roles
// says so.
func ByKeys(p Permission, r till.Role) bool {
	if p != PhonesSee && p != WalletsSee {
		return false
	}
	return staffRules[p].Grants[r] == None && (staffRules[KeysManage].Grants[r] != None || staffRules[WebhooksManage].Grants[r] != None)
}

// RuleOf returns the rule of a permission, nil if there is none (Member has
// none).
func RuleOf(p Permission) *Rule {
	if r := staffRules[p]; r != nil {
		return r
	}
	return houseRules[p]
}

// grantIn returns what memberships give in one merchant. A role of the
// merchant counts, and a role of the installation by the rule's Look.
func grantIn(memberships []till.Membership, client till.ID, mode till.Mode, p Permission) Grant {
	rule := staffRules[p]
	best := None
	for _, m := range memberships {
		g := None
		switch {
		case p == Member:
			if m.Client == client || m.Client == till.House && grantInHouse(memberships, ClientsLook) {
				g = Full
			}
		case rule == nil || client.IsZero():
		case m.Client == client:
			g = rule.Grants[m.Role]
		case m.Client == till.House && rule.Look != "":
			g = houseRules[rule.Look].Grants[m.Role]
		}
		if g == TestOnly && mode != till.Test || p == SandboxUse && mode != till.Test {
			g = None
		}
		best = max(best, g)
	}
	return best
}

// grantInHouse reports whether a role of the installation gives one of its
// permissions; Member is any such role.
func grantInHouse(memberships []till.Membership, p Permission) bool {
	rule := houseRules[p]
	for _, m := range memberships {
		if m.Client == till.House && (p == Member || rule != nil && rule.Grants[m.Role] != None) {
			return true
		}
	}
	return false
}

// GiversOf returns the roles whose people can give somebody a permission: they
// may manage people where it counts.
func GiversOf(p Permission) []till.Role {
	if houseRules[p] != nil {
		return []till.Role{admin}
	}
	return []till.Role{owner, admin}
}

// needsFactor lists the roles that need no second factor; every other role
// does.
var needsNoFactor = map[till.Role]bool{cashier: true, viewer: true}

// needsFactor reports whether a role needs a second factor even where the
// merchant does not ask for one.
func needsFactor(r till.Role) bool { return !needsNoFactor[r] }

// lifetime is how long a session lasts: without a request, and in all.
type lifetime struct{ idle, total time.Duration }

var (
	strictLifetime = lifetime{30 * time.Minute, 12 * time.Hour}
	normalLifetime = lifetime{12 * time.Hour, 7 * 24 * time.Hour}
	phoneLifetime  = lifetime{30 * 24 * time.Hour, 30 * 24 * time.Hour} // a cashier's phone that stays signed in
)

// lifetimeOf returns how long a session of somebody with these memberships
// lasts. The strictest role decides: a developer's is strict where live says so of
// the client, because keys and endpoints let money and data out. stay is for people
// who are cashiers only.
func lifetimeOf(memberships []till.Membership, live func(client till.ID) bool, stay bool) lifetime {
	cashierOnly := len(memberships) > 0
	for _, m := range memberships {
		if m.Client == till.House || m.Role == owner || m.Role == accountant || m.Role == developer && live(m.Client) {
			return strictLifetime
		}
		cashierOnly = cashierOnly && m.Role == cashier
	}
	if stay && cashierOnly {
		return phoneLifetime
	}
	return normalLifetime
}
