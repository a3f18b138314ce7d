package till

import "testing"

func TestReadPhone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ country, text, phone string }{
		{"CG", "242061234567", "242061234567"},
		{"CG", "+242 06 123 45 67", "242061234567"},
		{"CG", "00242 06-123.45.67", "242061234567"},
		{"CG", "06 123 45 67", "242061234567"},
		{"CG", "(06) 123/45/67", "242061234567"},
		{"CG", "+242 242 06 123 45 67", "242061234567"},
		{"CG", "\u202a+242\u00a006\u202f123\u00a045\u00a067\u202c", "242061234567"},
		{"KE", "0712 345 678", "254712345678"},
		{"KE", "+254 0712 345 678", "254712345678"},
		{"KE", "712345678", "254712345678"},
		{"BJ", "01 95 12 34 56", "2290195123456"},
		{"CI", "0123456789", "2250123456789"},
		{"CG", "", ""},
		{"CG", "6 123 45 67", ""},          // the zero is a part of the number
		{"CG", "06 123 45 67 89", ""},      // too long
		{"CG", "06 123 45 6a 7", ""},       // not only a number
		{"CG", "061234567, 051234567", ""}, // two
		{"CG", "+237 671 23 45 67", ""},    // another country's
		{"CG", "٠٦١٢٣٤٥٦٧", ""},            // digits of another script
		{"CG", "222 12 34 56", ""},         // a fixed line
	} {
		phone, ok := country(t, tt.country).ReadPhone(tt.text)
		if ok != (tt.phone != "") || ok && phone != tt.phone {
			t.Errorf("%q in %s is read as %q, %t, want %q", tt.text, tt.country, phone, ok, tt.phone)
		}
	}
	if phone, ok := country(t, "CG").ReadInternational("06 123 45 67"); ok {
		t.Errorf("a number without its calling code is read as %s", phone)
	}
}

func TestPredictMethod(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		country, phone, method string
		certain                bool
	}{
		{"CG", "242061234567", "mtn_momo", true},
		{"CG", "242041234567", "airtel_money", true},
		{"CG", "242011234567", "", false}, // of an operator without a wallet here
		{"CG", "242", "", false},
		{"KE", "254712123456", "mpesa", false},
		{"KE", "254733123456", "airtel_money", false},
		{"SL", "23270123456", "", false}, // Africell's, within a range of Orange's
		{"SL", "23276123456", "orange_money", false},
		{"GH", "233201234567", "vodafone_cash", false},
		{"CD", "243812345678", "mpesa", false}, // in two currencies, and still one method
	} {
		c := country(t, tt.country)
		m, certain := c.PredictMethod(tt.phone)
		code := ""
		if m != nil {
			code = m.Code
		}
		if code != tt.method || certain != tt.certain {
			t.Errorf("%s is predicted as %q, certain: %t; want %q, %t", tt.phone, code, certain, tt.method, tt.certain)
		}
	}
}

func TestAMethodHasItsNameInACountry(t *testing.T) {
	t.Parallel()
	m, _ := MethodOf("vodafone_cash")
	if m.Name != "Vodafone Cash" || m.NameIn("GH") != "Telecel Cash" || m.NameIn("CG") != "Vodafone Cash" {
		t.Errorf("%q, in Ghana %q", m.Name, m.NameIn("GH"))
	}
}
