package doctor

import (
	"net/netip"
	"testing"

	"till/operators"
	"till/server"
)

// The doctor tells of an admin address that other machines reach without a token for them, as
// a start does.
func TestTheDoctorTellsOfAnAdminAddressForOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, token string
		told          bool
	}{{"127.0.0.1:8081", "", false}, {"", "", false}, {"0.0.0.0:8081", "", true}, {":8081", "", true}, {"10.1.0.1:8081", "", true}, {"0.0.0.0:8081", "/nowhere", false}} {
		d := &doctor{}
		d.examineExposure(&Setup{AdminListen: c.listen, AdminTokenFile: c.token})
		told := false
		for _, f := range d.All {
			told = told || f.Name == server.ExposedAdmin && f.Verdict == Risky
		}
		if told != c.told {
			t.Errorf("the doctor says of %q with %q: %v", c.listen, c.token, d.All)
		}
	}
}

// It warns of an installation that others reach by HTTPS and that names no proxy.
func TestTheDoctorTellsOfAProxyThatIsNotNamed(t *testing.T) {
	t.Parallel()
	named := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		base    string
		trusted []netip.Prefix
		told    bool
	}{{"https://pay.example.com/v1", nil, true}, {"https://pay.example.com/v1", named, false}, {"http://127.0.0.1:8080/v1", nil, false}} {
		d := &doctor{}
		d.examineProxies(&Setup{Source: operators.Source{BaseURL: c.base}}, c.trusted)
		if told := len(d.All) == 1 && d.All[0].Verdict == Risky; told != c.told {
			t.Errorf("of %s with %v the doctor says %v", c.base, c.trusted, d.All)
		}
	}
}
