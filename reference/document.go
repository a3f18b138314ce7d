package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// node is a JSON value that keeps the order of its members: pages show members
// in the order of the document. A nil node is an absent value.
type node struct {
	names   []string // of an object's members
	members map[string]*node
	items   []*node
	scalar  any
}

func readNode(d *json.Decoder) (*node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return &node{scalar: token}, nil
	}
	n := &node{}
	if delim == '{' {
		n.members = map[string]*node{}
	} else {
		n.items = []*node{}
	}
	for d.More() {
		name := ""
		if delim == '{' {
			token, err := d.Token()
			if err != nil {
				return nil, err
			}
			name = token.(string) // the decoder has checked it
		}
		child, err := readNode(d)
		if err != nil {
			return nil, err
		}
		if delim == '{' {
			n.names = append(n.names, name)
			n.members[name] = child
		} else {
			n.items = append(n.items, child)
		}
	}
	_, err = d.Token()
	return n, err
}

// at follows names into objects; nil if one is not there.
func (n *node) at(names ...string) *node {
	for _, name := range names {
		if n == nil {
			return nil
		}
		n = n.members[name]
	}
	return n
}

// text returns a scalar as a text, "" if there is none.
func (n *node) text() string {
	if n == nil || n.scalar == nil {
		return ""
	}
	return fmt.Sprint(n.scalar)
}

// texts returns the scalars of a list, or the only one.
func (n *node) texts() []string {
	if n == nil {
		return nil
	}
	if n.items == nil {
		return []string{n.text()}
	}
	var out []string
	for _, i := range n.items {
		out = append(out, i.text())
	}
	return out
}

// document is the OpenAPI document.
type document struct {
	root       *node
	operations []*operation
}

// operation is one call. parameters has those of its path, too.
type operation struct {
	id, verb, path, tag string
	node                *node
	parameters          []*node
	webhook             bool // the service makes this call, to you
}

func readDocument(text []byte) (*document, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	root, err := readNode(d)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	doc := &document{root: root}
	for _, part := range []string{"paths", "webhooks"} {
		paths := root.at(part)
		if paths == nil {
			return nil, errors.New("the OpenAPI document has no " + part)
		}
		for _, path := range paths.names {
			item := paths.at(path)
			for _, verb := range item.names {
				op := item.at(verb)
				if op.at("operationId") == nil {
					continue
				}
				o := &operation{id: op.at("operationId").text(), verb: strings.ToUpper(verb), path: path, tag: op.at("tags").texts()[0], node: op, webhook: part == "webhooks"}
				for _, list := range []*node{item.at("parameters"), op.at("parameters")} {
					if list != nil {
						for _, p := range list.items {
							o.parameters = append(o.parameters, doc.resolve(p))
						}
					}
				}
				doc.operations = append(doc.operations, o)
			}
		}
	}
	return doc, nil
}

// resolve follows a reference.
func (d *document) resolve(n *node) *node {
	for n.at("$ref") != nil {
		n = d.root.at(strings.Split(strings.TrimPrefix(n.at("$ref").text(), "#/"), "/")...)
	}
	return n
}

// schemaName returns the name of the schema that a node refers to, "" if it is
// written out.
func schemaName(n *node) string {
	name, ok := strings.CutPrefix(n.at("$ref").text(), "#/components/schemas/")
	if !ok {
		return ""
	}
	return name
}

func (d *document) schema(name string) *node { return d.root.at("components", "schemas", name) }

// known returns the values of an open or closed list.
func known(n *node) []string {
	for _, name := range []string{"x-known-values", "enum"} {
		if list := n.at(name); list != nil {
			return list.texts()
		}
	}
	return nil
}

// slug is the part of an address that stands for a tag.
func slug(tag string) string { return strings.ReplaceAll(strings.ToLower(tag), " ", "-") }

// indented returns a value as JSON, in its order.
func (n *node) indented() string {
	var b bytes.Buffer
	n.write(&b, "")
	return b.String()
}

func (n *node) write(b *bytes.Buffer, indent string) {
	switch {
	case n.members != nil && len(n.names) > 0:
		b.WriteString("{\n")
		for i, name := range n.names {
			key, _ := json.Marshal(name) // a text cannot fail
			b.WriteString(indent + "  " + string(key) + ": ")
			n.members[name].write(b, indent+"  ")
			if i < len(n.names)-1 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
		}
		b.WriteString(indent + "}")
	case n.items != nil:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteString(", ")
			}
			item.write(b, indent)
		}
		b.WriteByte(']')
	case n.members != nil:
		b.WriteString("{}")
	default:
		text, _ := json.Marshal(n.scalar) // a scalar of JSON
		if n.scalar == nil {
			text = []byte("null")
		}
		b.Write(text)
	}
}
