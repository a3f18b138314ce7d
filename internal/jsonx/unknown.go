package jsonx

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"till/internal/nearest"
)

// Unknown is a member that a body has and its type does not.
type Unknown struct {
	Pointer string
	Nearest string // the name that was probably meant, "" if none is near
	Hidden  bool   // its name is not fit to be shown; the pointer is that of an object around it
}

// maxUnknown is how many unknown members are reported. A body of others than ours may
// have thousands.
const maxUnknown = 32

// Lenient is a type whose objects may have members of others: DecodeKnown does not
// report these.
type Lenient interface{ TakesUnknownMembers() }

var lenient = reflect.TypeFor[Lenient]()

// DecodeKnown is Decode, and also returns the members that v has no field for, in their
// order.
func DecodeKnown(data []byte, v any) ([]Unknown, error) {
	if !startsObject(data) || !scan(data) {
		return nil, Decode(data, v)
	}
	// Nearly every body has known members only, and costs no more than with Decode.
	err := json.Unmarshal(data, v, json.RejectUnknownMembers(true))
	if err == nil {
		return nil, nil
	}
	if !errors.Is(err, json.ErrUnknownName) {
		return nil, Decode(data, v)
	}
	reflect.ValueOf(v).Elem().SetZero() // it is half filled
	if err := Decode(data, v); err != nil {
		return nil, err
	}
	var found []Unknown
	w := walker{d: jsontext.NewDecoder(bytes.NewBuffer(data)), unknown: func(object reflect.Type, at, name string, names []string) {
		if reflect.PointerTo(object).Implements(lenient) || len(found) == maxUnknown {
			return
		}
		u := Unknown{Pointer: safePointer(at), Nearest: nearest.Word(name, names)}
		u.Hidden = u.Pointer != at
		found = append(found, u)
	}}
	if err := w.value(reflect.TypeOf(v)); err != nil {
		return nil, explain(data, err)
	}
	return found, nil
}
