package jsonx

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type lenientBody struct {
	Name *string `json:"name"`
}

func (*lenientBody) TakesUnknownMembers() {}

type knownBody struct {
	body
	Customer *lenientBody `json:"customer"`
	Internal []string     `json:"-"`
}

func TestDecodeKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []Unknown
	}{
		{"none", `{"reference":"a","amount":{"value":"5"},"items":[{"name":"x"}],"metadata":{"refrence":{"a":1}},"customer":{"x":1,"name":"A"},"at":"2026-01-01T00:00:00Z"}`, nil},
		{"what is wrong is said in order", `{"refrence":"a","amount":{"valeu":"5","value":"5"},"items":[{"name":"x"},{"nmae":"y"}],"zzz":[{"deep":1}]}`, []Unknown{
			{Pointer: "/refrence", Nearest: "reference"}, {Pointer: "/amount/valeu", Nearest: "value"}, {Pointer: "/items/1/nmae", Nearest: "name"}, {Pointer: "/zzz"}}},
		{"another case", `{"Reference":"a"}`, []Unknown{{Pointer: "/Reference", Nearest: "reference"}}},
		{"a field that is no member", `{"Internal":[],"-":1}`, []Unknown{{Pointer: "/Internal"}, {Pointer: "/-"}}},
		{"a phone number for a name", `{"amount":{"699000001":1}}`, []Unknown{{Pointer: "/amount", Hidden: true}}},
		{"null objects", `{"amount":null,"items":[null],"x":null}`, []Unknown{{Pointer: "/x"}}},
	} {
		var v knownBody
		got, err := DecodeKnown([]byte(c.in), &v)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", c.name, err, diff)
		}
		var plain knownBody
		if err := Decode([]byte(c.in), &plain); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain, v, cmp.AllowUnexported(knownBody{})); diff != "" {
			t.Errorf("%s: read otherwise than Decode does\n%s", c.name, diff)
		}
	}
}

// Members that nobody knows change nothing about what Decode refuses.
func TestDecodeKnownRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range refused {
		want := Decode([]byte(c.in), &body{})
		_, got := DecodeKnown([]byte(c.in), &body{})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
	if _, err := DecodeKnown([]byte(`{"x":1,"reference":7}`), &body{}); err == nil {
		t.Error("a wrong type behind an unknown member is not refused")
	}
}

func TestFewUnknownMembersAreTold(t *testing.T) {
	t.Parallel()
	got, err := DecodeKnown([]byte(manyKeys(5000)), &body{})
	if err != nil || len(got) != maxUnknown {
		t.Errorf("%d are told: %v", len(got), err)
	}
}
