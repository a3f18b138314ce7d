package api

import (
	"net/http"

	"till"
)

// predictRequest is the body of POST /payment-methods/predict. A number is in a body
// because numbers do not belong into addresses, which are logged.
type predictRequest struct {
	Phone   *string `json:"phone"`
	Country *string `json:"country"`
}

type prediction struct {
	Phone    string            `json:"phone"`
	Country  string            `json:"country"`
	Methods  []predictedMethod `json:"methods"`
	Portable bool              `json:"portable"`
}

type predictedMethod struct {
	Code      string `json:"code"`
	Name      string `json:"name"`
	Certainty string `json:"certainty"`
}

// What is known of a number's operator.
const (
	certaintyOwn    = "own"    // the prefix is this operator's alone: another method refuses the number
	certaintyLikely = "likely" // the prefix was given to this operator
)

// maxTypedPhone is the longest text that is read as a number, in bytes.
const maxTypedPhone = 64

// predictMethod is POST /payment-methods/predict: it reads a number as people type it, and
// says which of the client's methods it probably belongs to. No operator is asked: it is a
// table.
func (c *exchange) predictMethod() error {
	var req predictRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	wrong := func(pointer string, code till.Code, detail string) error {
		return &till.Error{Code: till.CodeValidationFailed, Fields: []till.FieldError{{Pointer: pointer, Code: code, Detail: detail}}}
	}
	switch {
	case req.Phone == nil:
		return wrong("/phone", till.FieldRequired, "is required")
	case len(*req.Phone) > maxTypedPhone:
		return wrong("/phone", till.FieldTooLong, "must be at most 64 bytes")
	}
	var country *till.Country
	if req.Country != nil {
		k, ok := till.CountryOf(*req.Country)
		if !ok {
			return wrong("/country", till.FieldCountryNotSupported, "must be an ISO 3166-1 code of a country whose numbers are known, for example CG")
		}
		country = k
	}
	offers := c.offers()
	if country == nil {
		if country = countryOfTyped(*req.Phone, offers); country == nil {
			return wrong("/phone", till.FieldInvalidPhone, "must begin with a calling code, for example 242, or come with its country")
		}
	}
	phone, ok := country.ReadPhone(*req.Phone)
	if !ok {
		return wrong("/phone", till.FieldInvalidPhone, "must be a mobile number of "+country.Code+"; a create takes "+country.PhoneRule())
	}
	return c.answer(http.StatusOK, predict(country, phone, offers))
}

// countryOfTyped returns the country of a number that was typed without one: that of its
// calling code, or the only one in which the client has methods.
func countryOfTyped(text string, offers []methodOffer) *till.Country {
	var only *till.Country
	several := false
	for _, o := range offers {
		for i, k := range o.Markets {
			if c, ok := till.CountryOf(k.Country); ok && o.serves(i) {
				several = several || only != nil && only != c
				only = c
			}
		}
	}
	for _, m := range till.Methods() {
		for _, code := range m.Countries() {
			if c, known := till.CountryOf(code); known {
				if _, ok := c.ReadInternational(text); ok {
					return c
				}
			}
		}
	}
	if several {
		return nil
	}
	return only
}

// predict says which of the client's methods a number belongs to.
func predict(country *till.Country, phone string, offers []methodOffer) prediction {
	out := prediction{Phone: phone, Country: country.Code, Methods: []predictedMethod{}, Portable: country.Portable}
	m, certain := country.PredictMethod(phone)
	for _, o := range offers {
		if m == nil || o.Code != m.Code || !o.servesIn(country.Code) {
			continue
		}
		certainty := certaintyLikely
		if certain {
			certainty = certaintyOwn
		}
		out.Methods = append(out.Methods, predictedMethod{m.Code, m.NameIn(country.Code), certainty})
	}
	return out
}
