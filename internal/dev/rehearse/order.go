package rehearse

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// builderTime is any time: only the order of the template's members counts.
var builderTime = time.Unix(1_800_000_000, 0)

// value is JSON whose scalars stay as they are written.
type value struct {
	raw     []byte   // of a scalar
	members []member // of an object
	items   []value  // of a list
	kind    byte     // '{', '[' or 0
}

type member struct {
	name string // as written, with quotes
	value
}

// readValue reads compact JSON.
func readValue(b []byte) (v value, rest []byte, ok bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return v, nil, false
	}
	rest = b[d.InputOffset():]
	switch raw[0] {
	case '[':
		v.kind = '['
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return v, nil, false
		}
		for _, i := range items {
			item, _, ok := readValue(i)
			if !ok {
				return v, nil, false
			}
			v.items = append(v.items, item)
		}
	case '{':
		v.kind = '{'
		for at := raw[1:]; len(at) > 0 && at[0] != '}'; {
			name, after, ok := readValue(at)
			if !ok || len(after) == 0 || after[0] != ':' {
				return v, nil, false
			}
			inner, after, ok := readValue(after[1:])
			if !ok {
				return v, nil, false
			}
			v.members = append(v.members, member{string(name.raw), inner})
			at = bytes.TrimPrefix(after, []byte(","))
		}
	default:
		v.raw = raw
	}
	return v, rest, true
}

// places are the members of a value by their path, in their order.
func (v value) places(path string, out map[string]int) {
	for i, m := range v.members {
		at := path + "." + m.name
		out[at] = i
		m.value.places(at, out)
	}
}

// append writes a value with the members whose places are known in their order, before the
// others.
func (v value) append(b []byte, path string, places map[string]int) []byte {
	switch v.kind {
	case '[':
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b, path, places)
		}
		return append(b, ']')
	case '{':
		members := slices.Clone(v.members)
		place := func(m member) int {
			if n, ok := places[path+"."+m.name]; ok {
				return n
			}
			return len(places)
		}
		slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(place(a), place(b)) })
		b = append(b, '{')
		for i, m := range members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, m.name...), ':')
			b = m.value.append(b, path+"."+m.name, places)
		}
		return append(b, '}')
	}
	return append(b, v.raw...)
}
