package api

import (
	"testing"

	"github.com/go-json-experiment/json"

	"till"
	"till/internal/jsonx"
)

// Structs become the text that those write who encode by hand: what an endpoint answered
// may be any bytes, a zero time or id is null, and no items are an empty list.
func TestStructsAreEncodedAsByHand(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "<a href='x'>&amp;", "é \u2028", "\x00\x1f\"\\\x7f", "cut in a rune: \xc3", "\xff\xfe"} {
		got, err := json.Marshal(text, encoding)
		if want := string(jsonx.AppendString(nil, text)); err != nil || string(got) != want {
			t.Errorf("%q: %s and not %s, %v", text, got, want, err)
		}
	}
	id := till.NewID(till.Time(1_790_000_000_000_000))
	for _, c := range []struct {
		v    any
		want string
	}{
		{till.ID{}, "null"},
		{id, string(id.AppendJSON(nil))},
		{till.Time(0), "null"},
		{till.Time(1), string(till.Time(1).AppendJSON(nil))},
		{list[key]{}, `{"items":[]}`},
		{orNull(""), "null"},
		{orNull(int64(7)), "7"},
	} {
		if got, err := json.Marshal(c.v, encoding); err != nil || string(got) != c.want {
			t.Errorf("%#v: %s and not %s, %v", c.v, got, c.want, err)
		}
	}
}
