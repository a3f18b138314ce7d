package jsonx

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

func canonical(t testing.TB, in string) string {
	t.Helper()
	got, err := Canonical(nil, jsontext.Value(in))
	if err != nil {
		t.Fatalf("Canonical(%q): %v", in, err)
	}
	return string(got)
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", "n"}, {"null", "n"}, {" true ", "t"}, {"false", "f"},
		{"0", "d0;"}, {"-0", "d0;"}, {"0.00", "d0;"}, {"-0e99999999999999999999", "d0;"},
		{"1", "d1e0;"}, {"1000", "d1e3;"}, {"1e3", "d1e3;"}, {"1E+3", "d1e3;"}, {"1000.0", "d1e3;"}, {"0.01e5", "d1e3;"},
		{"10000e-1", "d1e3;"}, {"-1.50", "d-15e-1;"}, {"0.05", "d5e-2;"}, {"100.05", "d10005e-2;"}, {" 5 ", "d5e0;"},
		{"1e1000000000", "d1e1000000000;"}, {"10e999999999", "d1e1000000000;"},
		{"1e-00000000000000000000000000001", "d1e-1;"},
		{"10e99999999999999999999999", "d1e100000000000000000000000;"},
		{"0.1e-99999999999999999999999", "d1e-100000000000000000000000;"},
		{"0.1e123456789012345678", "d1e123456789012345677;"},
		{`""`, "s0:"}, {`"a\u0062"`, "s2:ab"}, {`"\ud83d\ude00"`, "s4:😀"}, {`"😀"`, "s4:😀"}, {`"\\u0000"`, `s6:\u0000`},
		{`[]`, "a]"}, {` [ ] `, "a]"}, {`[1 , null,"x"]`, "ad1e0;ns1:x]"}, {`[[],[1]]`, "aa]ad1e0;]]"},
		{`{}`, "o}"}, {`{ "a" : null }`, "o}"}, {`{"b":1,"a":[{"d":{},"c":null}]}`, "os1:aaos1:do}}]s1:bd1e0;}"},
		{`{"\u0062":1,"a":2}`, "os1:ad2e0;s1:bd1e0;}"},
		{`{"ￂ":1,"😀":2}`, "os3:ￂd1e0;s4:😀d2e0;}"},
	} {
		t.Run("the form of "+c.in, func(t *testing.T) {
			t.Parallel()
			if got := canonical(t, c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCanonicalTellsApart(t *testing.T) {
	t.Parallel()
	values := []string{
		`null`, `true`, `false`, `0`, `1`, `-1`, `1.1`, `11`, `1e1000`, `1e-1000`, `""`, `"0"`, `"n"`, `"null"`,
		`[]`, `{}`, `[null]`, `[[]]`, `[{}]`, `["a","b"]`, `["ab"]`, `["a"]`, `["b","a"]`, `{"a":"b"}`, `{"a":["b"]}`,
		`{"a":{}}`, `{"a":[]}`, `{"A":"b"}`, `{"a":1,"b":2}`, `{"a":2,"b":1}`, `{"a":{"b":2}}`, `"é"`, `"e\u0301"`, `["1:a"]`,
	}
	seen := map[string]string{}
	for _, v := range values {
		c := canonical(t, v)
		if other, ok := seen[c]; ok {
			t.Errorf("%s and %s have the same form %q", v, other, c)
		}
		seen[c] = v
	}
}

func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{" ", "{", "]", "1 2", "01", `"a`, `{"a":1,"a":1}`, "\"\xff\"", nested(maxDepth + 1), strings.Repeat("[", 1e6)} {
		if got, err := Canonical([]byte("kept"), jsontext.Value(in)); err == nil || string(got) != "kept" {
			t.Errorf("Canonical(%.20q) returned %q, %v", in, got, err)
		}
	}
}

func TestCanonicalIsCheap(t *testing.T) {
	t.Parallel()
	t.Run("the longest exponent takes no time", func(t *testing.T) {
		t.Parallel()
		start := time.Now()
		got := canonical(t, "1e"+strings.Repeat("9", MaxBody))
		if len(got) != MaxBody+len("d1e;") || time.Since(start) > 5*time.Second {
			t.Errorf("%d bytes in %v", len(got), time.Since(start))
		}
	})
}

func TestDepthAndMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in             string
		depth, members int
	}{
		{"", 0, 0}, {"null", 0, 0}, {"1", 0, 0}, {`"{[:"`, 0, 0}, {"{}", 1, 0}, {"[]", 1, 0}, {`[{"a":1}]`, 2, 0},
		{`{"a":1}`, 1, 1}, {` {"a":{"b":1,"c":[2]},"d":":{\"","e":null}`, 3, 3}, {nested(4), 4, 1},
	} {
		if d, m := Depth(jsontext.Value(c.in)), Members(jsontext.Value(c.in)); d != c.depth || m != c.members {
			t.Errorf("%s: depth %d and %d members, want %d and %d", c.in, d, m, c.depth, c.members)
		}
	}
}

func TestAppendString(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", `""`}, {"plain ASCII", `"plain ASCII"`}, {"<a href='x'>&", `"<a href='x'>&"`}, {"é😀", `"é😀"`},
		{"\u2028\u2029", "\"\u2028\u2029\""}, {`"\`, `"\"\\"`}, {"\n\t\x01\x7f", "\"\\n\\t\\u0001\x7f\""}, {"\xff", "\"\ufffd\""},
	} {
		if got := string(AppendString([]byte("x"), c.in)); got != "x"+c.want {
			t.Errorf("AppendString(%q) gave %s, want %s", c.in, got, c.want)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("plain")
	f.Add("é\u2028\"\\\x00\x1f\x7f")
	f.Fuzz(func(t *testing.T, s string) {
		var back string
		if err := json.Unmarshal(AppendString(nil, s), &back); err != nil || back != strings.ToValidUTF8(s, "\ufffd") && back != string([]rune(s)) {
			t.Fatalf("%q came back as %q, %v", s, back, err)
		}
	})
}

// variant writes v again, members in another order and white space elsewhere.
func variant(b *bytes.Buffer, v any) {
	b.WriteString(" ")
	switch v := v.(type) {
	case map[string]any: // Go chooses the order
		b.WriteString("{\n")
		sep := ""
		for name, value := range v {
			quoted, _ := json.Marshal(name)
			b.WriteString(sep + string(quoted) + "\t:")
			variant(b, value)
			sep = ","
		}
		b.WriteString("}")
	case []any:
		b.WriteString("[")
		for i, value := range v {
			if i > 0 {
				b.WriteString("\r\n,")
			}
			variant(b, value)
		}
		b.WriteString("]")
	default:
		text, _ := json.Marshal(v)
		b.Write(text)
	}
	b.WriteString("\n")
}

func FuzzCanonical(f *testing.F) {
	f.Add([]byte(payment), "1e3", "1000.0")
	f.Add([]byte(`{"b":[1,null,{"z":null}],"a":"\u0062"}`), "-0", "0e7")
	f.Add([]byte(`[]`), "0.05", "5e-2")
	f.Fuzz(func(t *testing.T, data []byte, x, y string) {
		if form, err := Canonical(nil, data); err == nil && len(data) > 0 {
			var v any
			d := json.NewDecoder(bytes.NewReader(data))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				t.Fatalf("encoding/json refuses what Canonical takes: %v", err)
			}
			var b bytes.Buffer
			variant(&b, v)
			if again := canonical(t, b.String()); again != string(form) {
				t.Fatalf("%s became %q, but %s became %q", data, form, &b, again)
			}
		}
		rx, ry := rational(x), rational(y)
		if rx == nil || ry == nil {
			return
		}
		if equal := canonical(t, x) == canonical(t, y); equal != (rx.Cmp(ry) == 0) {
			t.Fatalf("%s and %s: same form is %t", x, y, equal)
		}
	})
}

// rational returns the value of a JSON number, or nil if it is none or its
// exponent is too large to carry out.
func rational(s string) *big.Rat {
	if len(s) > 100 || s == "" || !(s[0] == '-' || '0' <= s[0] && s[0] <= '9') || !json.Valid([]byte(s)) || strings.TrimSpace(s) != s {
		return nil
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err != nil || e > 400 || e < -400 {
			return nil
		}
	}
	r, _ := new(big.Rat).SetString(s)
	return r
}

func BenchmarkCanonical(b *testing.B) {
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = Canonical(dst[:0], payment); err != nil {
			b.Fatal(err)
		}
	}
}
