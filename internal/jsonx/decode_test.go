package jsonx

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// body has one field of every kind that the service reads.
type body struct {
	Reference *string `json:"reference"`
	Amount    *struct {
		Value    *string `json:"value"`
		Currency *string `json:"currency"`
	} `json:"amount"`
	Items []struct {
		Name     *string        `json:"name"`
		Quantity jsontext.Value `json:"quantity"`
	} `json:"items"`
	Inclusive *bool          `json:"inclusive"`
	Limit     int8           `json:"limit"`
	At        *time.Time     `json:"at"`
	Metadata  jsontext.Value `json:"metadata"`
}

func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

func manyKeys(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"k` + strconv.Itoa(i) + `":0`)
	}
	b.WriteByte('}')
	return b.String()
}

// Each refused row carries the secret 699000001 as a value where it can, so
// that the test sees whether an error repeats it.
var refused = []struct {
	name, in        string
	pointer, detail string
}{
	{"nothing", "", "", detailEmpty},
	{"white space only", " \n\t", "", detailEmpty},
	{"null", "null", "", detailObject},
	{"an array", "[]", "", detailObject},
	{"a string", `"699000001"`, "", detailObject},
	{"a number", "699000001", "", detailObject},
	{"a byte order mark", "\xef\xbb\xbf{}", "", detailBOM},
	{"UTF-16, little end first, marked", "\xff\xfe{\x00}\x00", "", detailUTF8},
	{"UTF-16, big end first, marked", "\xfe\xff\x00{\x00}", "", detailUTF8},
	{"UTF-16, little end first", "{\x00}\x00", "", detailNUL},
	{"UTF-16, big end first", "\x00{\x00}", "", detailObject},

	{"one level too deep", nested(maxDepth + 1), strings.Repeat("/a", maxDepth), detailDepth},
	{"a million levels", nested(1e6), strings.Repeat("/a", maxDepth), detailDepth},
	{"a million open brackets", `{"reference":` + strings.Repeat("[", 1e6), "/reference" + strings.Repeat("/0", maxDepth-1), detailDepth},
	{"deep in an unknown member", `{"x":[[[[[[[[]]]]]]]]}`, "/x/0/0/0/0/0/0/0", detailDepth},
	{"deep in raw metadata", `{"metadata":[[[[[[[[]]]]]]]]}`, "/metadata/0/0/0/0/0/0/0", detailDepth},

	{"a name twice", `{"reference":"699000001","reference":"b"}`, "/reference", detailDuplicate},
	{"a name twice, once escaped", `{"reference":"699000001","\u0072eference":"b"}`, "/reference", detailDuplicate},
	{"an unknown name twice", `{"x":{"y":1,"y":2}}`, "/x/y", detailDuplicate},
	{"a name twice in raw metadata", `{"metadata":{"y":1,"y":2}}`, "/metadata/y", detailDuplicate},
	{"a second object", `{} {}`, "", detailTrailing},
	{"a word after the object", `{"reference":"a"} 699000001`, "", detailTrailing},
	{"a NUL after the object", "{}\x00", "", detailNUL},

	{"an invalid byte in a value", "{\"reference\":\"699000001\xff\"}", "/reference", detailUTF8},
	{"an invalid byte in a name", "{\"refer\xffence\":1}", "", detailUTF8},
	{"an overlong NUL", "{\"reference\":\"\xc0\x80\"}", "/reference", detailUTF8},
	{"a surrogate in UTF-8", "{\"reference\":\"\xed\xa0\x80\"}", "/reference", detailUTF8},
	{"a lone high surrogate", `{"reference":"699000001\ud800"}`, "/reference", detailSurrogate},
	{"a lone low surrogate", `{"reference":"\udc00"}`, "/reference", detailSurrogate},
	{"surrogates in the wrong order", `{"reference":"\udc00\ud800"}`, "/reference", detailSurrogate},
	{"a lone surrogate in an unknown member", `{"x":"\ud800"}`, "/x", detailSurrogate},
	{"a lone surrogate in raw metadata", `{"metadata":{"a":"\ud800"}}`, "/metadata/a", detailSurrogate},
	{"half an escape", `{"reference":"699000001\u12"}`, "/reference", detailSyntax},
	{"an unknown escape", `{"reference":"\x41"}`, "/reference", detailSyntax},
	{"a backslash at the end", `{"reference":"\`, "/reference", detailEnd},

	{"a raw NUL", "{\"reference\":\"699000001\x00\"}", "/reference", detailNUL},
	{"an escaped NUL", `{"reference":"699000001\u0000"}`, "/reference", detailNUL},
	{"a NUL after an escaped backslash", `{"reference":"\\\u0000"}`, "/reference", detailNUL},
	{"a NUL in a name", `{"amount":{"val\u0000ue":1}}`, "/amount", detailNUL},
	{"a NUL in an unknown member", `{"x":["\u0000"]}`, "/x/0", detailNUL},
	{"a NUL in raw metadata", `{"metadata":{"a":"\u0000"}}`, "/metadata/a", detailNUL},

	{"an object cut short", `{"reference":"699000001"`, "", detailEnd},
	{"a string cut short", `{"reference":"699000001`, "/reference", detailEnd},
	{"a comma too many", `{"reference":"699000001",}`, "", detailSyntax},
	{"a comment", `{/* */}`, "", detailSyntax},
	{"single quotes", `{'reference':1}`, "", detailSyntax},
	{"not a number", `{"limit":NaN}`, "/limit", detailSyntax},
	{"a leading zero", `{"limit":007}`, "", detailSyntax},
	{"a plus sign", `{"limit":+5}`, "/limit", detailSyntax},
	{"a broken raw value", `{"metadata":{"a":}}`, "/metadata/a", detailSyntax},
	{"a control character", "{\"reference\":\"a\nb\"}", "/reference", detailSyntax},

	{"a number for a string", `{"amount":{"value":699000001}}`, "/amount/value", "The value must be a string."},
	{"a string for a bool", `{"inclusive":"699000001"}`, "/inclusive", "The value must be true or false."},
	{"an array for an object", `{"amount":[]}`, "/amount", "The value must be an object."},
	{"an object for an array", `{"items":{}}`, "/items", "The value must be an array."},
	{"a wrong type in an array", `{"items":[{},{"name":1e3}]}`, "/items/1/name", "The value must be a string."},
	{"a string for a number", `{"limit":"5"}`, "/limit", "The value must be a number."},
	{"a number out of range", `{"limit":699000001}`, "/limit", detailRange},
	{"a fraction for an integer", `{"limit":1.5}`, "/limit", detailRange},
	{"a number for a time", `{"at":699000001}`, "/at", "The value must be a string."},
	{"a time that is none", `{"at":"699000001"}`, "/at", detailType},

	{"a mistake below a very long name", `{"` + strings.Repeat("x", 300) + `":"\ud800"}`, "", detailSurrogate},
	{"a mistake below a name with a line break", `{"x":{"a\nb":"\ud800"}}`, "/x", detailSurrogate},
	{"a mistake below a name that turns text around", `{"x":{"a\u202eb":"\ud800"}}`, "/x", detailSurrogate},
	{"a mistake below a name with a slash", `{"a/b":"\ud800"}`, "/a~1b", detailSurrogate},
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var b body
			err := Decode([]byte(c.in), &b)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Decode returned %v, want an *Error", err)
			}
			if e.Pointer != c.pointer || e.Detail != c.detail {
				t.Errorf("got %q %q, want %q %q", e.Pointer, e.Detail, c.pointer, c.detail)
			}
			if strings.Contains(err.Error(), "699000001") {
				t.Errorf("%q repeats a value", err)
			}
		})
	}
}

// Where the text is not JSON, the sentence says the place, as an editor counts it.
func TestThePlaceOfASyntaxError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, sentence string }{
		{"{\"reference\": \"a\",\n  \"amount\": oops}", detailSyntax + " Line 2, column 13."},
		{"{\"reference\": \"Brazzaville – Aïcha\",}", detailSyntax + " Line 1, column 36."},
		{"{\r\n\"limit\": 1\r\n", detailEnd + " Line 3, column 1."},
		{"{}\n{}", detailTrailing + " Line 2, column 1."},
		{"{\"a\":1,\n\"a\":2}", detailDuplicate + " Line 2, column 1."},
		{"[]", detailObject},
		{`{"amount":[]}`, "The value must be an object."},
	} {
		var e *Error
		if err := Decode([]byte(c.in), &body{}); !errors.As(err, &e) || e.Sentence() != c.sentence {
			t.Errorf("%q: %v, want %s", c.in, err, c.sentence)
		}
	}
}

// All values of the wrong type are told at once, in their order, up to a limit.
func TestAllMistakesOfType(t *testing.T) {
	t.Parallel()
	told := func(err error) (out []string) {
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%v", err)
		}
		for _, e := range append([]*Error{e}, e.Others...) {
			out = append(out, e.Pointer+" "+e.Detail)
		}
		return out
	}
	const in = `{"reference":7,"amount":{"value":5000,"currency":["XAF"]},"x":{"y":1},"items":[{"name":1},[],{"name":"a"}],"inclusive":"yes","limit":699000001,"at":1,"metadata":{"a":1}}`
	want := []string{"/reference The value must be a string.", "/amount/value The value must be a string.", "/amount/currency The value must be a string.", "/items/0/name The value must be a string.",
		"/items/1 The value must be an object.", "/inclusive The value must be true or false.", "/limit " + detailRange, "/at The value must be a string."}
	if got := told(Decode([]byte(in), &body{})); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	_, err := DecodeKnown([]byte(in), &body{})
	if got := told(err); !slices.Equal(got, want) {
		t.Errorf("with unknown members: %q", got)
	}
	// What follows is no JSON.
	if got := told(Decode([]byte(`{"reference":7,"inclusive":"yes","amount":oops}`), &body{})); !slices.Equal(got, []string{want[0], "/inclusive The value must be true or false.", "/amount " + detailSyntax}) {
		t.Errorf("before a syntax error: %q", got)
	}
	many := `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"name":1},`, 1000), ",") + `]}`
	if got := told(Decode([]byte(many), &body{})); len(got) != maxMistakes {
		t.Errorf("%d mistakes are told, want %d", len(got), maxMistakes)
	}
}

var accepted = []struct{ name, in, reference string }{
	{"an empty object", `{}`, ""},
	{"white space around", " \r\n\t{ } \n", ""},
	{"the deepest allowed", nested(maxDepth), ""},
	{"the deepest allowed beside a value", `{"x":` + nested(maxDepth-1) + `,"reference":"a"}`, "a"},
	{"brackets in a string", `{"reference":"[[[[[[[[[[{{{{{{{{{{"}`, "[[[[[[[[[[{{{{{{{{{{"},
	{"brackets after an escaped quote", `{"reference":"\"[[[[[[[[[["}`, `"[[[[[[[[[[`},
	{"a backslash before u0000", `{"reference":"\\u0000"}`, `\u0000`},
	{"two backslashes before u0000", `{"reference":"\\\\u0000"}`, `\\u0000`},
	{"a string that ends in a backslash", `{"reference":"\\","x":"\\\\"}`, `\`},
	{"other control escapes", `{"reference":"\u0001\n"}`, "\x01\n"},
	{"a surrogate pair", `{"reference":"\ud83d\ude00"}`, "😀"},
	{"the replacement character itself", "{\"reference\":\"\ufffd\"}", "\ufffd"},
	{"an escaped name", `{"\u0072eference":"a"}`, "a"},
	{"an unknown member", `{"x":[1,{"y":null}],"reference":"a"}`, "a"},
	{"a name in another case is unknown", `{"Reference":"a","REFERENCE":1}`, ""},
	{"both cases are no duplicates", `{"Reference":7,"reference":"a"}`, "a"},
	{"null is absent", `{"reference":null,"amount":null,"items":null,"limit":null}`, ""},
	{"an empty string is present", `{"reference":""}`, ""},
}

func TestDecodeAccepts(t *testing.T) {
	t.Parallel()
	for _, c := range accepted {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var b body
			if err := Decode([]byte(c.in), &b); err != nil {
				t.Fatal(err)
			}
			got := ""
			if b.Reference != nil {
				got = *b.Reference
			}
			if got != c.reference {
				t.Errorf("reference is %q, want %q", got, c.reference)
			}
		})
	}
	t.Run("null and the empty string differ", func(t *testing.T) {
		t.Parallel()
		var null, empty body
		if err := errors.Join(Decode([]byte(`{"reference":null}`), &null), Decode([]byte(`{"reference":""}`), &empty)); err != nil {
			t.Fatal(err)
		}
		if null.Reference != nil || empty.Reference == nil {
			t.Errorf("got %v and %v, want nil and not nil", null.Reference, empty.Reference)
		}
	})
	t.Run("raw members keep their text", func(t *testing.T) {
		t.Parallel()
		var b body
		if err := Decode([]byte(`{"items":[{"quantity":1.50}],"metadata":{"a" : 1E400}}`), &b); err != nil {
			t.Fatal(err)
		}
		if q, m := string(b.Items[0].Quantity), string(b.Metadata); q != "1.50" || m != `{"a" : 1E400}` {
			t.Errorf("got %q and %q", q, m)
		}
	})
	t.Run("a million names do not take quadratic time", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			t.Skip("takes seconds under the race detector")
		}
		in := manyKeys(1e6)
		if len(in) <= MaxBody {
			t.Fatal("the reader would let this in")
		}
		// A second or two. To compare each name with all others would take many minutes: no
		// machine is so busy that it does not tell the one from the other.
		decoded := make(chan error, 1)
		go func() { decoded <- Decode([]byte(in), &body{}) }()
		select {
		case err := <-decoded:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(3 * time.Minute):
			t.Error("a million names take more than three minutes")
		}
	})
}

var payment = []byte(`{
  "idempotency_key": "0192f3a4-7c1e-7b2a-9d3e-5f60718293a4",
  "amount": {"value": "15000", "currency": "XAF"},
  "method": "mtn_momo", "country": "CM",
  "customer": {"phone": "237670000001", "name": "Aïcha N."},
  "reference": "order-2024-000123", "description": "Panier du 12 mars",
  "charge": {"subtotal": "15000", "items": [
    {"name": "Riz 5 kg", "quantity": 2, "unit_price": "5000", "total": "10000"},
    {"name": "Huile 1 l", "quantity": 2.5, "unit_price": "2000", "total": "5000"}]},
  "metadata": {"shop": "Douala-3", "till": 7}
}`)

type paymentBody struct {
	Key    string `json:"idempotency_key"`
	Amount *struct {
		Value    string `json:"value"`
		Currency string `json:"currency"`
	} `json:"amount"`
	Method   string `json:"method"`
	Country  string `json:"country"`
	Customer *struct {
		Phone string `json:"phone"`
		Name  string `json:"name"`
	} `json:"customer"`
	Reference   string `json:"reference"`
	Description string `json:"description"`
	Charge      *struct {
		Subtotal string `json:"subtotal"`
		Items    []struct {
			Name      string         `json:"name"`
			Quantity  jsontext.Value `json:"quantity"`
			UnitPrice string         `json:"unit_price"`
			Total     string         `json:"total"`
		} `json:"items"`
	} `json:"charge"`
	Metadata jsontext.Value `json:"metadata"`
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(payment)))
	for b.Loop() {
		var p paymentBody
		if err := Decode(payment, &p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(payment)))
	for b.Loop() {
		if !scan(payment) {
			b.Fatal("refused")
		}
	}
}
