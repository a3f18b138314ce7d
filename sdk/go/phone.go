package till

import "strings"

// PhoneError says what is wrong with a phone number, in one word.
type PhoneError string

// What can be wrong with a phone number.
const (
	PhoneEmpty        PhoneError = "empty"
	PhoneNotDigits    PhoneError = "not_digits"
	PhoneOtherCountry PhoneError = "other_country"
	PhoneTooShort     PhoneError = "too_short"
	PhoneTooLong      PhoneError = "too_long"
)

func (e PhoneError) Error() string { return "till: the phone number is wrong: " + string(e) }

const maxPhoneText = 64

// ReadPhone reads what a person typed, by the rule of a country, as
// method.Countries[0].Phone. It returns the digits to show and to confirm, calling
// code first: "+242 06 123 45 67" is "242061234567". A number without its calling
// code gets it; a trunk zero goes where the country's numbers have none, and
// stays in Congo, where it belongs to the number.
func ReadPhone(text string, rule PaymentMethodCountryPhone) (string, error) {
	if len(text) > maxPhoneText {
		return "", PhoneTooLong
	}
	number := strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", "-", "", ".", "", "/", "", "(", "", ")", "").Replace(text)
	international := false
	if rest, ok := strings.CutPrefix(number, "+"); ok {
		number, international = rest, true
	} else if rest, ok := strings.CutPrefix(number, "00"); ok {
		number, international = rest, true
	}
	if number == "" {
		return "", PhoneEmpty
	}
	if !digits(number) {
		return "", PhoneNotDigits
	}
	length := int(rule.Length)
	switch {
	case strings.HasPrefix(number, rule.CallingCode) && (international || len(number) >= length):
		// It is whole, or wrong in its length.
	case international:
		return "", PhoneOtherCountry
	case number[0] == '0' && !strings.HasPrefix(rule.Example, rule.CallingCode+"0"):
		number = rule.CallingCode + number[1:] // a trunk zero, of the dialling at home
	case len(number) <= length-len(rule.CallingCode):
		number = rule.CallingCode + number
	}
	if len(number) < length {
		return "", PhoneTooShort
	} else if len(number) > length {
		return "", PhoneTooLong
	}
	if !strings.HasPrefix(number, rule.CallingCode) {
		return "", PhoneOtherCountry
	}
	return number, nil
}
