package main

import (
	"bytes"
	_ "embed" // carriers.csv is an input
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"

	"till"
)

// carriersCSV says which method the customers of a carrier have: country, carrier (as
// libphonenumber's data names it), method.
//
//go:embed carriers.csv
var carriersCSV string

type carrier struct{ country, name string }

func readCarriers() (map[carrier]string, error) {
	records, err := csv.NewReader(strings.NewReader(carriersCSV)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("carriers.csv: %w", err)
	}
	methods := make(map[carrier]string, len(records))
	for _, row := range records[1:] {
		c := carrier{row[0], row[1]}
		if methods[c] != "" {
			return nil, fmt.Errorf("carriers.csv: %s of %s stands there twice", c.name, c.country)
		}
		methods[c] = row[2]
	}
	return methods, nil
}

// likelyColumn is the column of methods.csv that is written here: the last one.
const likelyColumn = 11

// fillMethods returns the table of methods with the prefixes that the carriers' data gives.
func fillMethods(table []byte) ([]byte, error) {
	methods, err := readCarriers()
	if err != nil {
		return nil, err
	}
	records, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("methods.csv: %w", err)
	}
	used := map[carrier]bool{}
	ranges := map[string]map[string]string{}
	for _, row := range records[1:] {
		code, country := row[0], row[2]
		if ranges[country] == nil {
			if ranges[country], err = carrierRanges(country); err != nil {
				return nil, fmt.Errorf("%s: %w", country, err)
			}
		}
		var prefixes []string
		for prefix, name := range ranges[country] {
			if c := (carrier{country, name}); methods[c] == code {
				prefixes = append(prefixes, prefix)
				used[c] = true
			}
		}
		slices.Sort(prefixes)
		row[likelyColumn] = strings.Join(prefixes, " ")
	}
	for c, method := range methods {
		if !used[c] {
			return nil, fmt.Errorf("carriers.csv: %s of %s has no numbers, or no row of methods.csv has %s there", c.name, c.country, method)
		}
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.WriteAll(records); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// carrierDepth is how many digits of a national number are read: as many as the longest
// prefix of the carriers' data has in the countries of the table.
const carrierDepth = 5

// carrierRanges returns the prefixes of a country's national numbers, each with its
// carrier. None begins another one: where a carrier's range has a part that is another
// carrier's, it is split.
func carrierRanges(code string) (map[string]string, error) {
	country, ok := till.CountryOf(code)
	if !ok {
		return nil, fmt.Errorf("no such country")
	}
	found := map[string]string{}
	digits := min(carrierDepth, country.Lengths[0]-len(country.CallingCode))
	for p, end := 0, pow10(digits); p < end; p++ {
		prefix := fmt.Sprintf("%0*d", digits, p)
		name, whole, err := carrierOf(country, prefix)
		if err != nil {
			return nil, err
		}
		if len(whole) > digits {
			return nil, fmt.Errorf("the prefix %s of %s is longer than %d digits", whole, name, digits)
		}
		if name != "" {
			found[whole] = name
		}
	}
	for split := true; split; {
		split = false
		for prefix, name := range found {
			if !hasLonger(found, prefix) {
				continue
			}
			delete(found, prefix)
			for digit := range 10 {
				if child := prefix + strconv.Itoa(digit); found[child] == "" {
					found[child] = name
				}
			}
			split = true
		}
	}
	return found, nil
}

func hasLonger(found map[string]string, prefix string) bool {
	for other := range found {
		if len(other) > len(prefix) && strings.HasPrefix(other, prefix) {
			return true
		}
	}
	return false
}

// carrierOf returns the carrier of the numbers that begin so, and the whole prefix that the
// data has for it.
func carrierOf(country *till.Country, prefix string) (name, whole string, err error) {
	national := prefix + strings.Repeat("0", country.Lengths[0]-len(country.CallingCode)-len(prefix))
	n, err := strconv.ParseUint(national, 10, 64)
	if err != nil {
		return "", "", err
	}
	calling, err := strconv.ParseInt(country.CallingCode, 10, 32)
	if err != nil {
		return "", "", err
	}
	zeros := int32(len(national) - len(strings.TrimLeft(national, "0")))
	number := &phonenumbers.PhoneNumber{}
	number.CountryCode = new(int32(calling))
	number.NationalNumber = new(n)
	number.ItalianLeadingZero = new(zeros > 0)
	number.NumberOfLeadingZeros = new(zeros)
	name, index, err := phonenumbers.GetCarrierWithPrefixForNumber(number, "en")
	if err != nil || name == "" {
		return "", "", err
	}
	return name, strings.TrimPrefix(strconv.Itoa(index), country.CallingCode), nil
}

func pow10(n int) int {
	p := 1
	for range n {
		p *= 10
	}
	return p
}
