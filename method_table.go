package till

import "strings"

// methodTable is every method that the program comes with: those of the
// sandbox, of the operators that have an adapter, and of all providers that
// pawaPay's table names. The configuration adds others and changes these
// ([[method]]), so that a new country needs no new program.
//
// A method is listed with its markets, a country and currency each. Behind them
// may be, in brackets, what is special: "test", the sandbox serves it; "whole",
// the operator moves whole units only, although the currency has decimals.
var methodTable = []*Method{
	method("mtn_momo", "MTN MoMo",
		"CG XAF (test), CM XAF (test), UG UGX (test), GH GHS (test), RW RWF (test), ZM ZMW (test), CI XOF (test), BJ XOF (test)",
		"NG NGN, ZA ZAR, GN GNF, GW XOF, LR LRD, SS SSP, SZ SZL"),
	method("airtel_money", "Airtel Money",
		"CG XAF (test), UG UGX (test), KE KES (test), ZM ZMW (test), MG MGA (test), GA XAF (test)",
		"CD CDF, CD USD, GH GHS, MW MWK, NG NGN (whole), RW RWF, TD XAF, TZ TZS"),
	method("mpesa", "M-Pesa",
		"KE KES (test whole)",
		"CD CDF (whole), CD USD, ET ETB, LS LSL, MZ MZN, TZ TZS (whole)"),
	method("orange_money", "Orange Money", "CM XAF, CD CDF, CD USD, CI XOF, SL SLE, SN XOF"),
	method("moov_money", "Moov Money", "BJ XOF, BF XOF"),
	method("free_money", "Free Money", "SN XOF"),
	method("vodafone_cash", "Vodafone Cash", "GH GHS"),
	method("tnm_mpamba", "TNM Mpamba", "MW MWK"),
	method("emola", "e-Mola", "MZ MZN (whole)"),
	method("tigo_pesa", "Tigo Pesa", "TZ TZS (whole)"),
	method("halopesa", "HaloPesa", "TZ TZS (whole)"),
	method("zamtel_money", "Zamtel Money", "ZM ZMW"),
}

// prefixTable says which operators' numbers begin with what, as COUNTRY then
// prefixes of national numbers. It holds a country only where no number is
// ported and the ranges have not moved for years: to refuse a good number loses a
// sale. tools/phonegen compares it with libphonenumber's data on carriers.
//
// Congo: 06 is MTN's, 05 Airtel's, and 04 was Warid's, which Airtel took over.
// 01 and 02 belong to operators without a wallet here, and are not judged.
var prefixTable = map[string]map[string][]string{
	"mtn_momo":     {"CG": {"06"}},
	"airtel_money": {"CG": {"05", "04"}},
}

// method reads a row of the table.
func method(code, name string, markets ...string) *Method {
	m := &Method{Code: code, Name: name, CountryScoped: true, RequiredCustomerFields: []string{"phone"}}
	for text := range strings.SplitSeq(strings.Join(markets, ", "), ", ") {
		pair, special, _ := strings.Cut(text, " (")
		country, currency, _ := strings.Cut(pair, " ")
		k, ok := NewMarket(country, currency)
		if !ok {
			panic("method table: no such currency: " + text)
		}
		k.Sandbox = strings.Contains(special, "test")
		if strings.Contains(special, "whole") {
			n, _ := CurrencyDecimals(currency)
			k.Step = pow10(n)
		}
		k.Prefixes = prefixTable[code][country]
		m.Markets = append(m.Markets, k)
	}
	return m
}
