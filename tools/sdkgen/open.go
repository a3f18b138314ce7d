package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	yaml "github.com/oasdiff/yaml3"
)

// openDescription returns the open description as YAML and JSON. It differs from
// the strict one in what the service sends: members may be added, and a list of
// values may grow. What the service reads stays as it is.
func openDescription(strict []byte) (asYAML, asJSON []byte, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(strict, &document); err != nil {
		return nil, nil, err
	}
	root := document.Content[0]
	o := &opener{schemas: map[string]*yaml.Node{}, seen: map[*yaml.Node]bool{}, lines: strings.SplitAfter(string(strict), "\n")}
	for name, node := range pairs(child(root, "components", "schemas")) {
		o.schemas[name] = node
	}
	o.open(child(root, "components", "responses"))
	o.open(child(root, "components", "headers"))
	for _, section := range []string{"paths", "webhooks"} {
		for _, item := range pairs(child(root, section)) {
			for _, op := range pairs(item) {
				o.open(child(op, "responses"))
				if section == "webhooks" {
					o.open(child(op, "requestBody"))
				}
			}
		}
	}
	if o.err != nil {
		return nil, nil, o.err
	}
	asYAML = []byte(strings.Join(slices.DeleteFunc(o.lines, func(l string) bool { return l == "" }), ""))
	var opened yaml.Node
	if err := yaml.Unmarshal(asYAML, &opened); err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	if err := writeJSON(&b, opened.Content[0]); err != nil {
		return nil, nil, err
	}
	return asYAML, b.Bytes(), nil
}

// opener edits the lines of the strict description, so that its layout stays.
type opener struct {
	schemas map[string]*yaml.Node
	seen    map[*yaml.Node]bool
	lines   []string
	err     error
}

// open changes everything that can be reached from what the service sends.
func (o *opener) open(node *yaml.Node) {
	if node == nil || o.seen[node] {
		return
	}
	o.seen[node] = true
	if name, ok := reference(node); ok {
		o.open(o.schemas[name])
		return
	}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Value == "example" || key.Value == "examples":
			continue
		case key.Value == "additionalProperties" && value.Value == "false":
			o.edit(key, "additionalProperties: false", "")
		case key.Value == "enum" && value.Kind == yaml.SequenceNode:
			o.edit(key, "enum:", "x-known-values:")
		default:
			o.open(value)
		}
	}
	for i := 0; node.Kind == yaml.SequenceNode && i < len(node.Content); i++ {
		o.open(node.Content[i])
	}
}

// edit replaces a word at a key's place; a line of nothing else is deleted.
func (o *opener) edit(key *yaml.Node, from, to string) {
	line := o.lines[key.Line-1]
	i := key.Column - 1
	if !strings.HasPrefix(line[i:], from) {
		// An earlier edit of the line has moved it.
		i = strings.Index(line, from)
	}
	switch {
	case i < 0:
		o.err = fmt.Errorf("line %d has no %s", key.Line, from)
	case to == "" && strings.TrimSpace(line) == from:
		o.lines[key.Line-1] = ""
	case to == "":
		o.err = fmt.Errorf("line %d: %s stands beside something else", key.Line, from)
	default:
		o.lines[key.Line-1] = line[:i] + to + line[i+len(from):]
	}
}

// writeJSON writes a YAML node as JSON, in its order.
func writeJSON(b *bytes.Buffer, node *yaml.Node) error {
	switch node.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(node.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, node.Content[i].Value)
			b.WriteByte(':')
			if err := writeJSON(b, node.Content[i+1]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, n := range node.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, n); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		switch node.Tag {
		case "!!str", "!!timestamp":
			writeText(b, node.Value)
		case "!!null":
			b.WriteString("null")
		case "!!bool", "!!int", "!!float":
			if !json.Valid([]byte(node.Value)) {
				return fmt.Errorf("line %d: %s is not as JSON has it", node.Line, node.Value)
			}
			b.WriteString(node.Value)
		default:
			return fmt.Errorf("line %d: no %s in JSON", node.Line, node.Tag)
		}
		return nil
	}
	return fmt.Errorf("line %d: an alias or another node that JSON does not have", node.Line)
}

func writeText(b *bytes.Buffer, text string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)      // a text cannot fail
	b.Truncate(b.Len() - 1) // the line break of Encode
}
