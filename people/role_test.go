package people

import (
	"strings"
	"testing"

	"till"
)

// matrix is the table of the roles as people read it, by hand: y is all, r the
// last 48 hours, t test merchants, n keys that cannot pay out. A star is fresh
// proof.
const matrix = `
payments.see            y y r y y
collect                 y - y t -
links.manage            y - y t -
phones.see              y y - - -
notes.write             y y r y -
wallets.see             y y - - y
export                  y y - y y
export.phones *         y y - - -
payouts.propose *       y y - - -
payouts.approve *       y y - - -
refunds.propose *       y y - - -
refunds.approve *       y y - - -
webhooks.see            y - - y -
webhooks.resend         y - - y -
webhooks.manage *       y - - y -
keys.manage *           y - - n -
people.manage *         y - - - -
policy.set *            y - - - -
audit.see               y y - - -
sandbox.use             y y y y y

house.clients.look        y y y - y
house.clients.manage *    y - - - -
house.fees.propose *      y y - - -
house.fees.approve *      y y - - -
house.cases.work          - y y - -
house.resolve.propose *   - y y - -
house.resolve.approve *   y y - - -
house.refunds.propose *   - y y - -
house.refunds.approve *   - y - - -
house.adjust.propose *    - y - - -
house.adjust.approve *    y y - - -
house.statements.compare    - y y - -
house.statements.propose *  - y - - -
house.statements.approve *  y y - - -
house.phones.see            - y y - -
house.webhooks.resend       - y y - -
house.operators.see         y y y y y
house.operators.check *     y - - y -
house.verify.run            y y - y y
house.people.manage *       y - - - -
house.audit.see             y y - - y
`

func TestRoleMatrix(t *testing.T) {
	t.Parallel()
	letters := map[Grant]string{None: "-", Full: "y", Recent: "r", TestOnly: "t", NoPayoutKeys: "n"}
	var got strings.Builder
	for _, family := range []struct {
		rules []Rule
		roles []till.Role
	}{{StaffRules, till.StaffRoles}, {HouseRules, till.HouseRoles}} {
		for _, rule := range family.rules {
			got.WriteString(string(rule.Permission))
			if rule.Fresh {
				got.WriteString(" *")
			}
			for _, role := range family.roles {
				got.WriteString(" " + letters[rule.Grants[role]])
			}
			for role := range rule.Grants {
				if role.OfHouse() != rule.OfHouse() {
					t.Errorf("%s is given to %s", rule.Permission, role)
				}
			}
			got.WriteString("\n")
		}
	}
	var want strings.Builder
	for line := range strings.SplitSeq(matrix, "\n") {
		if fields := strings.Fields(line); len(fields) > 0 {
			want.WriteString(strings.Join(fields, " ") + "\n")
		}
	}
	if got.String() != want.String() {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want.String())
	}
}

// Every role in every place: what counts is the role there, or the right to view of the
// installation, and test merchants have what live ones have not.
func TestMay(t *testing.T) {
	t.Parallel()
	live := &till.Client{ID: till.NewID(1), Mode: till.Live}
	test := &till.Client{ID: till.NewID(2), Mode: till.Test}
	foreign := &till.Client{ID: till.NewID(3), Mode: till.Test}
	for _, role := range till.StaffRoles {
		s := &Session{Memberships: []till.Membership{{Client: live.ID, Role: role}, {Client: test.ID, Role: role}}}
		for _, rule := range StaffRules {
			want := rule.Grants[role]
			onLive := want
			if want == TestOnly || rule.Permission == SandboxUse {
				onLive = None
			}
			if got := s.May(live, rule.Permission); got != onLive {
				t.Errorf("%s %s on a live merchant: %v, want %v", role, rule.Permission, got, onLive)
			}
			if got := s.May(test, rule.Permission); got != want {
				t.Errorf("%s %s on a test merchant: %v, want %v", role, rule.Permission, got, want)
			}
			if s.May(foreign, rule.Permission) != None {
				t.Errorf("%s has %s with another merchant", role, rule.Permission)
			}
		}
		for _, rule := range HouseRules {
			if s.MayHouse(rule.Permission) || s.May(live, rule.Permission) != None {
				t.Errorf("%s of a merchant has %s", role, rule.Permission)
			}
		}
		if s.May(live, Member) != Full || s.May(foreign, Member) != None || s.MayHouse(Member) || s.Looks(live.ID) {
			t.Errorf("%s is no member, or one elsewhere", role)
		}
		s.FactorMissing = true
		if s.May(live, PaymentsSee) != None || s.May(live, Member) != None {
			t.Errorf("%s without a second factor sees something", role)
		}
	}
	for _, role := range till.HouseRoles {
		s := &Session{Memberships: []till.Membership{{Client: till.House, Role: role}}}
		for _, rule := range HouseRules {
			if s.MayHouse(rule.Permission) != (rule.Grants[role] == Full) {
				t.Errorf("%s %s", role, rule.Permission)
			}
		}
		for _, rule := range StaffRules {
			want := None
			if rule.Look != "" {
				want = houseRules[rule.Look].Grants[role]
			}
			if got := s.May(live, rule.Permission); got != want {
				t.Errorf("%s %s in a merchant: %v, want %v", role, rule.Permission, got, want)
			}
		}
		if looks := role != till.RoleEngineer; s.Looks(live.ID) != looks || (s.May(live, Member) == Full) != looks {
			t.Errorf("%s looks: %v", role, s.Looks(live.ID))
		}
		s.FactorMissing = true
		if s.MayHouse(Member) {
			t.Errorf("%s without a second factor is let in", role)
		}
	}
}

// Each permission has a rule, and each Look is a permission of the installation.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, rule := range StaffRules {
		if rule.Look != "" && houseRules[rule.Look] == nil {
			t.Errorf("%s is given by %s, which is none of the house", rule.Permission, rule.Look)
		}
		if RuleOf(rule.Permission).Permission != rule.Permission || len(GiversOf(rule.Permission)) != 2 {
			t.Errorf("%s is not found", rule.Permission)
		}
	}
	if RuleOf(Member) != nil || RuleOf("nothing") != nil {
		t.Error("a rule is there for nothing")
	}
	for role, needs := range map[till.Role]bool{owner: true, accountant: true, developer: true, cashier: false, viewer: false, auditor: true} {
		if needsFactor(role) != needs {
			t.Errorf("%s needs a second factor: %v", role, !needs)
		}
	}
}
