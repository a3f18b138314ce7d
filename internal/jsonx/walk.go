package jsonx

import (
	"bytes"
	"encoding"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// walker goes through a document beside the type that it belongs to.
type walker struct {
	d       *jsontext.Decoder
	unknown func(object reflect.Type, at, name string, names []string) // a member that has no field, if not nil
	leaf    func(of reflect.Type, at string, value jsontext.Value)     // a value that is not walked through, if not nil
}

// value reads the next value, which belongs to a type.
func (w *walker) value(t reflect.Type) error {
	of := t
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch kind := w.d.PeekKind(); {
	case readsItself(t):
	case kind == '{' && t.Kind() == reflect.Struct:
		return w.object(t)
	case kind == '[' && t.Kind() == reflect.Slice:
		return w.array(t.Elem())
	}
	if w.leaf == nil {
		return w.d.SkipValue()
	}
	value, err := w.d.ReadValue()
	if err == nil {
		w.leaf(of, string(w.d.StackPointer()), value)
	}
	return err
}

func (w *walker) array(element reflect.Type) error {
	if _, err := w.d.ReadToken(); err != nil {
		return err
	}
	for w.d.PeekKind() != ']' {
		if err := w.value(element); err != nil {
			return err
		}
	}
	_, err := w.d.ReadToken()
	return err
}

func (w *walker) object(t reflect.Type) error {
	fields, names := membersOf(t)
	if _, err := w.d.ReadToken(); err != nil {
		return err
	}
	for w.d.PeekKind() != '}' {
		token, err := w.d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		of, known := fields[name]
		if known {
			err = w.value(of)
		} else {
			if w.unknown != nil {
				w.unknown(t, string(w.d.StackPointer()), name, names)
			}
			err = w.d.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	_, err := w.d.ReadToken()
	return err
}

var (
	jsonUnmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	jsonUnmarshalerFrom = reflect.TypeFor[json.UnmarshalerFrom]()
	textUnmarshaler     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsItself reports whether a type decides alone what its JSON is.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonUnmarshaler) || p.Implements(jsonUnmarshalerFrom) || p.Implements(textUnmarshaler)
}

// membersOf returns what the members of a struct are called, with their types. A field
// without a name in its tag is no member.
func membersOf(t reflect.Type) (types map[string]reflect.Type, names []string) {
	types = map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			types[name] = field.Type
			names = append(names, name)
		}
	}
	return types, names
}

// maxMistakes is how many values of the wrong type are told.
const maxMistakes = 32

// mistakes adds to the first mistake that was found in a document, if it is one of type, the
// others: who sends numbers for strings does so more than once.
func mistakes(data []byte, v any, first *Error) *Error {
	if first.Line > 0 {
		return first
	}
	var all []*Error
	w := walker{d: jsontext.NewDecoder(bytes.NewBuffer(data)), leaf: func(of reflect.Type, at string, value jsontext.Value) {
		err := json.Unmarshal(value, reflect.New(of).Interface())
		if err == nil || len(all) == maxMistakes {
			return
		}
		e := explain(value, err)
		all = append(all, newError(jsontext.Pointer(at+e.Pointer), e.Detail))
	}}
	err := w.value(reflect.TypeOf(v))
	if err != nil { // the rest is no JSON
		all = append(all, explain(data, err))
	}
	for _, e := range all {
		if e.Pointer != first.Pointer || e.Detail != first.Detail {
			first.Others = append(first.Others, e)
		}
	}
	return first
}
