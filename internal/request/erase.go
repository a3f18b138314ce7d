package request

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"till/internal/jsonx"
)

// errDocument means that a stored document is not what a create call has written.
var errDocument = errors.New("the stored document cannot be read")

// EraseDocument returns a stored document without what it says about a person: the members
// of the party, customer or recipient, become null, and its phone the given one. With texts,
// description and metadata become null, too. All other members stay byte by byte.
func EraseDocument(document []byte, party, phone string, texts bool) ([]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(bytes.Join([][]byte{[]byte("{"), document, []byte("}")}, nil)))
	if _, err := d.ReadToken(); err != nil {
		return nil, errDocument
	}
	out := make([]byte, 0, len(document))
	for d.PeekKind() == '"' {
		name, value, err := readMember(d)
		if err != nil {
			return nil, errDocument
		}
		switch {
		case name == party && value.Kind() == '{':
			if value, err = eraseParty(value, phone); err != nil {
				return nil, errDocument
			}
		case texts && (name == "description" || name == "metadata" || name == "return_url"):
			value = jsontext.Value("null")
		}
		out = appendMember(out, name, value)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, errDocument
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, errDocument
	}
	return out, nil
}

// eraseParty returns an object with the same members, all null but the phone.
func eraseParty(object jsontext.Value, phone string) (jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var members []byte
	for d.PeekKind() == '"' {
		name, _, err := readMember(d)
		if err != nil {
			return nil, err
		}
		value := jsontext.Value("null")
		if name == "phone" {
			value = jsonx.AppendString(nil, phone)
		}
		members = appendMember(members, name, value)
	}
	return append(append([]byte("{"), members...), '}'), nil
}

func readMember(d *jsontext.Decoder) (name string, value jsontext.Value, err error) {
	token, err := d.ReadToken()
	if err != nil {
		return "", nil, err
	}
	name = token.String()
	value, err = d.ReadValue()
	return name, value.Clone(), err
}

func appendMember(b []byte, name string, value jsontext.Value) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	b = jsonx.AppendString(b, name)
	return append(append(b, ':'), value...)
}

// MemberText returns a member of a stored document that is a text, "" if there is none.
func MemberText(document []byte, name string) string {
	if !bytes.Contains(document, []byte(`"`+name+`"`)) {
		return ""
	}
	d := jsontext.NewDecoder(bytes.NewReader(bytes.Join([][]byte{[]byte("{"), document, []byte("}")}, nil)))
	if _, err := d.ReadToken(); err != nil {
		return ""
	}
	for d.PeekKind() == '"' {
		found, value, err := readMember(d)
		if err != nil {
			return ""
		}
		if found == name && value.Kind() == '"' {
			text, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return ""
			}
			return string(text)
		}
	}
	return ""
}
