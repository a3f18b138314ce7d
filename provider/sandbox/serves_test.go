package sandbox

import "testing"

func TestServes(t *testing.T) {
	t.Parallel()
	o := &Operator{}
	for want, names := range map[bool][][3]string{
		true:  {{"mtn_momo", "CG", "XAF"}, {"airtel_money", "MG", "MGA"}, {"mpesa", "KE", "KES"}},
		false: {{"mtn_momo", "NG", "NGN"}, {"mtn_momo", "CG", "USD"}, {"orange_money", "CM", "XAF"}, {"cash", "CG", "XAF"}},
	} {
		for _, n := range names {
			if o.Serves(n[0], n[1], n[2]) != want || o.Payouts().Serves(n[0], n[1], n[2]) != want {
				t.Errorf("%v is served: %v", n, !want)
			}
		}
	}
}
