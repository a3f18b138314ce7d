package collect

import (
	"reflect"
	"strings"
	"testing"

	"till/internal/jsonx"
)

// full is a Request that only the full decoder reads.
type full Request

// shop is what a shop sends.
const shop = `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},` +
	`"idempotency_key":"0192f3a4-7c1e-7b2a-9d3e-5f60718293a4","customer":{"phone":"242061234567","name":"Grace Mabiala"},` +
	`"reference":"ORDER-000000000001","description":"Two bags of rice and one litre of oil",` +
	`"metadata":{"shop":"Marche Total, Brazzaville","cart":"cart_7f3a9c51e2"}}`

// every has each member that a Request knows.
const every = `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},
	"idempotency_key":"0192f3a4-7c1e-7b2a-9d3e-5f60718293a4","reference":"o1","description":"Riz, huile",
	"metadata":{"till":7},"customer":{"phone":"242061234567","name":"Grace","email":"g@example.com"},
	"charge":{"items":[{"name":"Riz","quantity":2,"unit_price":"2000","total":"4000"},
		{"name":"Huile","quantity":10,"unit_price":"100","total":"1000"}],"subtotal":"5000"},
	"tax":{"inclusive":true,"amount":"0","rate":"18.00","type":"TVA"}}`

// deep returns a body whose metadata makes it nest n levels deep.
func deep(n int) string {
	return `{"metadata":{"a":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2) + `}}`
}

// long returns a body of n bytes.
func long(n int) string {
	const frame = `{"method":""}`
	return `{"method":"` + strings.Repeat("m", n-len(frame)) + `"}`
}

var plain = []struct{ name, in string }{
	{"what a shop sends", shop},
	{"every member", every},
	{"no member", `{}`},
	{"objects without members", `{"amount":{},"metadata":{},"customer":{},"charge":{},"tax":{}}`},
	{"an empty string", `{"method":""}`},
	{"letters beyond ASCII", `{"description":"Aïcha, 中文, 😀","metadata":{"ï":"é"}}`},
	{"the replacement character", "{\"description\":\"\ufffd\"}"},
	{"a delete character", "{\"description\":\"\x7f\"}"},
	{"brackets in strings", `{"description":"}]{[,:","metadata":{"}":"]"}}`},
	{"white space", " \t\r\n{ \t\r\n\"method\" \t\r\n: \t\r\n\"a\" \t\r\n, \t\r\n\"charge\" : { \"items\" : [ { } , { } ] } } \t\r\n"},
	{"white space in metadata", "{\"metadata\": {\n\t\"a b\" : [ 1 , { \"c\" : null } ]\r\n} }"},
	{"any value in metadata", `{"metadata":{"a":[-1.50,1E400,true,false,null,"",{}]}}`},
	{"no items", `{"charge":{"items":[]}}`},
	{"no items, with white space", `{"charge":{"items":[ ]}}`},
	{"an empty item", `{"charge":{"items":[{}]}}`},
	{"many items", `{"charge":{"items":[` + strings.Repeat(`{"name":"a","total":"1"},`, 40) + `{"quantity":1}]}}`},
	{"zero", `{"charge":{"items":[{"quantity":0}]}}`},
	{"more digits than an integer holds", `{"charge":{"items":[{"quantity":123456789012345678901234567890}]}}`},
	{"false", `{"tax":{"inclusive":false}}`},
	{"as deep as allowed", deep(jsonx.MaxDepth)},
	{"as long as allowed", long(jsonx.MaxPlain)},
}

var unusual = []struct{ name, in string }{
	{"nothing", ``},
	{"white space only", ` `},
	{"an array", `[]`},
	{"a byte order mark", "\xef\xbb\xbf{}"},
	{"something after it", `{}{}`},
	{"a NUL after it", "{}\x00"},
	{"a vertical tab after it", "{}\v"},
	{"too long", long(jsonx.MaxPlain + 1)},
	{"an escape", `{"method":"\u0061"}`},
	{"an escaped quote", `{"method":"\""}`},
	{"an escaped name", `{"m\u0065thod":"a"}`},
	{"an escape in metadata", `{"metadata":{"a":"\u0062"}}`},
	{"an escaped NUL in metadata", `{"metadata":{"a":"\u0000"}}`},
	{"a NUL in a string", "{\"method\":\"\x00\"}"},
	{"a line feed in a string", "{\"method\":\"\n\"}"},
	{"the last control byte in a string", "{\"method\":\"\x1f\"}"},
	{"a line feed in a name", "{\"method\n\":\"a\"}"},
	{"a line feed in a string of metadata", "{\"metadata\":{\"a\":\"\n\"}}"},
	{"bytes that are no UTF-8", "{\"method\":\"\xff\"}"},
	{"half a surrogate pair in UTF-8", "{\"method\":\"\xed\xa0\x80\"}"},
	{"bytes that are no UTF-8, in metadata", "{\"metadata\":{\"a\":\"\xff\"}}"},
	{"null for a string", `{"method":null}`},
	{"null for an object", `{"customer":null}`},
	{"null for the metadata", `{"metadata":null}`},
	{"null for the items", `{"charge":{"items":null}}`},
	{"null for an item", `{"charge":{"items":[null]}}`},
	{"null for a number", `{"charge":{"items":[{"quantity":null}]}}`},
	{"null for a flag", `{"tax":{"inclusive":null}}`},
	{"an unknown member", `{"x":1}`},
	{"an unknown member of the amount", `{"amount":{"x":"1"}}`},
	{"an unknown member of the customer", `{"customer":{"x":"1"}}`},
	{"an unknown member of the charge", `{"charge":{"x":"1"}}`},
	{"an unknown member of an item", `{"charge":{"items":[{"x":"1"}]}}`},
	{"an unknown member of the tax", `{"tax":{"x":"1"}}`},
	{"a name in capitals", `{"Method":"a"}`},
	{"a string twice", `{"method":"a","method":"a"}`},
	{"an empty string twice", `{"method":"","method":""}`},
	{"the amount twice", `{"amount":{},"amount":{}}`},
	{"the metadata twice", `{"metadata":{},"metadata":{}}`},
	{"the customer twice", `{"customer":{},"customer":{}}`},
	{"the items twice", `{"charge":{"items":[],"items":[]}}`},
	{"a number twice", `{"charge":{"items":[{"quantity":1,"quantity":1}]}}`},
	{"a flag twice", `{"tax":{"inclusive":true,"inclusive":true}}`},
	{"a member of the metadata twice", `{"metadata":{"a":1,"a":1}}`},
	{"a number for a string", `{"method":1}`},
	{"a string for an object", `{"amount":"5000"}`},
	{"a string for the metadata", `{"metadata":"a"}`},
	{"an array for the metadata", `{"metadata":[]}`},
	{"an object for the items", `{"charge":{"items":{}}}`},
	{"a string for an item", `{"charge":{"items":["a"]}}`},
	{"a string for a number", `{"charge":{"items":[{"quantity":"1"}]}}`},
	{"a string for a flag", `{"tax":{"inclusive":"true"}}`},
	{"a fraction", `{"charge":{"items":[{"quantity":2.5}]}}`},
	{"an exponent", `{"charge":{"items":[{"quantity":1e3}]}}`},
	{"a sign", `{"charge":{"items":[{"quantity":-1}]}}`},
	{"a leading zero", `{"charge":{"items":[{"quantity":01}]}}`},
	{"a word that begins like true", `{"tax":{"inclusive":truth}}`},
	{"a word that begins with true", `{"tax":{"inclusive":truely}}`},
	{"true cut off", `{"tax":{"inclusive":tru`},
	{"a string cut off", `{"method":"a`},
	{"metadata cut off", `{"metadata":{"a":1`},
	{"an object cut off", `{"method":"a"`},
	{"a number cut off", `{"charge":{"items":[{"quantity":1`},
	{"a comma before the end", `{"method":"a",}`},
	{"a comma before the first", `{,"method":"a"}`},
	{"a comma before the end of the items", `{"charge":{"items":[{},]}}`},
	{"no comma", `{"method":"a""country":"b"}`},
	{"no colon", `{"method""a"}`},
	{"a comma for a colon", `{"method","a"}`},
	{"no value", `{"method":}`},
	{"no quotes", `{method:"a"}`},
	{"the wrong bracket", `{"charge":{"items":[}}}`},
	{"the wrong bracket in metadata", `{"metadata":{"a":1]}`},
	{"metadata that is no JSON", `{"metadata":{a}}`},
	{"metadata with a comma at its end", `{"metadata":{"a":1,}}`},
	{"too deep", deep(jsonx.MaxDepth + 1)},
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for _, c := range plain {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := []byte(c.in)
			var got Request
			if !got.DecodePlain(data) {
				t.Fatal("gave up")
			}
			clear(data) // the buffer is another call's by then
			var want full
			if err := jsonx.Decode([]byte(c.in), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, Request(want)) {
				t.Errorf("got another value than the full decoder")
			}
		})
	}
	for _, c := range unusual {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got Request
			if got.DecodePlain([]byte(c.in)) {
				t.Error("did not give up")
			}
			if !reflect.DeepEqual(got, Request{}) {
				t.Error("gave up, but not before it changed the value")
			}
		})
	}
	t.Run("what was there is left to the full decoder", func(t *testing.T) {
		t.Parallel()
		var got, want Request
		if !got.DecodePlain([]byte(every)) || !want.DecodePlain([]byte(every)) {
			t.Fatal("gave up")
		}
		for _, in := range []string{`{"method":"a"}`, `{"amount":{}}`, `{"metadata":{}}`, `{"customer":{}}`, `{"charge":{}}`, `{"tax":{}}`} {
			if got.DecodePlain([]byte(in)) || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: did not give up, or changed the value", in)
			}
		}
	})
}

// FuzzPlain holds the short way against the long one: it may give up on
// anything, but what it takes, the full decoder takes for the same.
func FuzzPlain(f *testing.F) {
	for _, c := range plain {
		f.Add([]byte(c.in))
	}
	for _, c := range unusual {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got Request
		if !got.DecodePlain(data) {
			if !reflect.DeepEqual(got, Request{}) {
				t.Fatal("gave up, but not before it changed the value")
			}
			return
		}
		var want full
		if err := jsonx.Decode(data, &want); err != nil {
			t.Fatalf("took what the full decoder refuses: %v", err)
		}
		if !reflect.DeepEqual(got, Request(want)) {
			t.Fatalf("made %+v of it, the full decoder %+v", got, Request(want))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct{ name, in string }{{"shop", shop}, {"every", every}} {
		data := []byte(c.in)
		b.Run(c.name+"/plain", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := jsonx.Decode(data, &Request{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/full", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := jsonx.Decode(data, &full{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
