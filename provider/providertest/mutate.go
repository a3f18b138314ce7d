package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"till/provider"
)

// leaves visits the values of an answer, with their paths of object members and array
// indexes.
func leaves(v any, path []any, visit func(path []any, v any)) {
	switch x := v.(type) {
	case map[string]any:
		for name, inner := range x {
			leaves(inner, append(slices.Clone(path), name), visit)
		}
	case []any:
		for i, inner := range x {
			leaves(inner, append(slices.Clone(path), i), visit)
		}
	}
	if len(path) > 0 {
		visit(path, v)
	}
}

// with returns the answer with another value at one path.
func with(text []byte, path []any, value any) []byte {
	root := parsed(text)
	at := root
	for i, step := range path {
		last := i == len(path)-1
		switch x := at.(type) {
		case map[string]any:
			if last {
				x[step.(string)] = value
			}
			at = x[step.(string)]
		case []any:
			if last {
				x[step.(int)] = value
			}
			at = x[step.(int)]
		}
	}
	b, err := json.Marshal(root)
	if err != nil {
		panic(err)
	}
	return b
}

func parsed(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("the operator's answer is not JSON: %v", err))
	}
	return v
}

// garbled are values of wrong types, and undocumented texts.
var garbled = []any{
	nil, true, json.Number("-1"), json.Number("12345678901234567890123"), json.Number("1e400"), "", "no such word",
	"\x00\u202e", []any{}, []any{"x"}, map[string]any{}, map[string]any{"code": "x"},
}

// testMutations garbles each value of a true answer, one at a time. No result may end the
// payment in another way than the true answer does, nor accept another amount or reference.
func testMutations(t *testing.T, h Harness) {
	for _, s := range []Story{Approve, NoFunds, UnknownPayer} {
		r, ok := h.story(s)
		if !ok || h.submit(t, r).Outcome != provider.Accepted {
			continue
		}
		truth := h.end(t, r)
		text := h.answerTo(t, r)
		leaves(parsed(text), nil, func(path []any, _ any) {
			for _, value := range garbled {
				bad := with(text, path, value)
				h.Line.Next(Check, Rewrite(func(status int, _ []byte) (int, []byte) { return status, bad }))
				got, err := h.Provider.Check(t.Context(), h.query(r))
				switch {
				case err != nil:
					if got != (provider.Result{}) {
						t.Errorf("%v = %#v: there is a result beside the error", path, value)
					}
				case got.Outcome == provider.Success && truth.Outcome != provider.Success:
					t.Errorf("%v = %#v: a failure became a success", path, value)
				case got.Outcome.Final() && got.Outcome != provider.Success && truth.Outcome == provider.Success:
					t.Errorf("%v = %#v: a success became %q", path, value, got.Outcome)
				case got.Outcome == provider.Success && got.Amount.IsZero() && !truth.Amount.IsZero() && value != nil && value != "":
					t.Errorf("%v = %#v: a sum that cannot be read passes for none", path, value)
				}
			}
		})
	}
}

// testNumbers writes each number of a true answer as a string, and each string of digits as
// a number. The outcome stays the same, or is unknown.
func testNumbers(t *testing.T, h Harness) {
	r, truth := h.succeeded(t)
	text := h.answerTo(t, r)
	same := 0
	leaves(parsed(text), nil, func(path []any, v any) {
		var other any
		switch x := v.(type) {
		case json.Number:
			other = x.String()
		case string:
			if _, err := strconv.ParseFloat(x, 64); err != nil || x[0] == '0' && len(x) > 1 || !json.Valid([]byte(x)) {
				return
			}
			other = json.Number(x)
		default:
			return
		}
		changed := with(text, path, other)
		h.Line.Next(Check, Rewrite(func(status int, _ []byte) (int, []byte) { return status, changed }))
		got, err := h.Provider.Check(t.Context(), h.query(r))
		if err == nil && got != truth {
			t.Errorf("%v = %#v: the result is %+v, want %+v", path, other, got, truth)
		}
		if err == nil {
			same++
		}
	})
	t.Logf("%d places can be written either way", same)
}
