package till

import (
	_ "embed" // methods.csv is a part of the program
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

// methodsCSV is every method that the program comes with: those of the sandbox,
// of the operators that have an adapter, and of all providers that pawaPay's table
// names. The configuration adds others and changes these ([[method]]), so that a
// new country needs no new program.
//
// A row is a method in a country and currency. Its columns:
//
//	method, name       the code, and what people call the method; the same in all of its rows
//	min, max, step     bounds and step of an amount, in minor units; NewMarket's where empty
//	test               "test" where the sandbox serves it
//	local              what people of the country call it, where that is another name
//	flow               how customers approve; push where empty
//	own                prefixes of national numbers that are this operator's for certain
//	likely             prefixes that were given to it; tools/phonegen writes them
//
// A prefix is own only where no number is ported and the ranges have not moved for
// years: a payment is refused for it, and to refuse a good number loses a sale.
// Congo: 06 is MTN's, 05 Airtel's, and 04 was Warid's, which Airtel took over. 01
// and 02 belong to operators without a wallet here, and are not judged.
//
//go:embed methods.csv
var methodsCSV string

var methodTable = readMethods(methodsCSV)

// methodColumns is the first line of the table.
const methodColumns = "method,name,country,currency,min,max,step,test,local,flow,own,likely"

// readMethods reads the table, in its order. The table is a part of the program, so
// a mistake in it is one of the program.
func readMethods(table string) (methods []*Method) {
	records, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil || strings.Join(records[0], ",") != methodColumns {
		panic(fmt.Sprintf("methods.csv: %v, or its first line is not %s", err, methodColumns))
	}
	for _, row := range records[1:] {
		code, name := row[0], row[1]
		if n := len(methods); n == 0 || methods[n-1].Code != code {
			methods = append(methods, &Method{Code: code, Name: name, CountryScoped: true, RequiredCustomerFields: []string{"phone"}})
		}
		m := methods[len(methods)-1]
		k, ok := NewMarket(row[2], row[3])
		if !ok || m.Name != name {
			panic("methods.csv: the currency is not known, or the method has another name in: " + strings.Join(row, ","))
		}
		for i, to := range []*int64{&k.Min, &k.Max, &k.Step} {
			if text := row[4+i]; text != "" {
				if *to, err = strconv.ParseInt(text, 10, 64); err != nil {
					panic("methods.csv: " + err.Error())
				}
			}
		}
		k.Sandbox, k.Local = row[7] == "test", row[8]
		if row[9] != "" {
			k.Flow = Flow(row[9])
		}
		if !k.Flow.Valid() {
			panic("methods.csv: there is no such flow in: " + strings.Join(row, ","))
		}
		k.Prefixes, k.Likely = prefixList(row[10]), prefixList(row[11])
		m.Markets = append(m.Markets, k)
	}
	return methods
}

// prefixList returns the prefixes of a cell, nil for none.
func prefixList(cell string) []string {
	if cell == "" {
		return nil
	}
	return strings.Fields(cell)
}
