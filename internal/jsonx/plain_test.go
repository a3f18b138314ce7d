package jsonx

import (
	"strings"
	"testing"
)

// name reads bodies of one member by itself.
type name struct {
	Name  *string `json:"name"`
	plain bool
}

func (n *name) DecodePlain(data []byte) bool {
	p := NewPlain(data)
	p.Object(func(member string) {
		if member != "name" {
			p.GiveUp()
			return
		}
		p.Text(&n.Name)
	})
	n.plain = p.Done()
	return n.plain
}

func TestDecodeAsksFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in  string
		plain, ok bool
	}{
		{"a plain body", `{"name":"a"}`, true, true},
		{"an unusual body", `{"x":1,"name":"a"}`, false, true},
		{"a wrong body", `{"x":}`, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var n name
			err := Decode([]byte(c.in), &n)
			if n.plain != c.plain || (err == nil) != c.ok {
				t.Fatalf("plain is %t and the error %v, want %t and ok %t", n.plain, err, c.plain, c.ok)
			}
			if c.ok && (n.Name == nil || *n.Name != "a") {
				t.Errorf("the name is %v", n.Name)
			}
		})
	}
}

// The readers of a recursive value have no end of their own.
func TestPlainDepth(t *testing.T) {
	t.Parallel()
	read := func(depth int) bool {
		p := NewPlain([]byte(strings.Repeat("[", depth) + strings.Repeat("]", depth)))
		var array func()
		array = func() { p.Array(array) }
		array()
		return p.Done()
	}
	if !read(MaxDepth) || read(MaxDepth+1) {
		t.Errorf("got %t and %t, want true and false", read(MaxDepth), read(MaxDepth+1))
	}
}
