package request

import "testing"

func TestEraseDocument(t *testing.T) {
	t.Parallel()
	const charge = `"charge":{"items":[{"name":"pain","quantity":1.50,"unit_price":"100","total":"150"}],"subtotal":null},"tax":{"inclusive":true,"amount":"5","rate":"18.00","type":null}`
	for _, c := range []struct {
		in, party string
		texts     bool
		want      string // "": an error
	}{
		{`"description":"for Awa","customer":{"phone":"242061234567","name":"Awa \"N\"","email":"a@x.cg"},` + charge + `,"metadata":{"customer":{"phone":"1"}}`, "customer", false,
			`"description":"for Awa","customer":{"phone":"~a","name":null,"email":null},` + charge + `,"metadata":{"customer":{"phone":"1"}}`},
		{`"description":"for Awa","customer":{"phone":null,"name":"Awa","email":null},` + charge + `,"metadata":{"a":1}`, "customer", true,
			`"description":null,"customer":{"phone":"~a","name":null,"email":null},` + charge + `,"metadata":null`},
		{`"description":null,"customer":{"phone":null},"metadata":null,"return_url":"https://shop.example/awa?n=1"`, "customer", true,
			`"description":null,"customer":{"phone":"~a"},"metadata":null,"return_url":null`},
		{`"description":null,"recipient":{"phone":"242061234567"},"metadata":null`, "recipient", true, `"description":null,"recipient":{"phone":"~a"},"metadata":null`},
		{`"description":null,"recipient":{"phone":"2420`, "recipient", true, ``},
		{`"description":null},{"x":1`, "recipient", true, ``},
	} {
		got, err := EraseDocument([]byte(c.in), c.party, "~a", c.texts)
		if string(got) != c.want && err == nil || (err != nil) != (c.want == "") {
			t.Errorf("%s\nbecomes %s, %v\nwant    %s", c.in, got, err, c.want)
		}
	}
}
