package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	yaml "github.com/oasdiff/yaml3"

	"till"
)

// Model is what the languages are written from. Everything is in the order of
// the document.
type Model struct {
	Version    string // of the SDKs
	API        string // the revision of the interface
	Schemas    []*Schema
	Operations []Operation
	Currencies []Currency
	Tables     map[string]string // the SQL of a Store's tables, by the name of its file
}

// Schema is a named object or a list of known values.
type Schema struct {
	Name    string
	Doc     string
	Values  []string // of an open list; a value that is not here is a plain text
	Members []Member
	Answer  bool // the service sends it: members that nobody knows are kept
}

// Member is one member of an object.
type Member struct {
	Name     string
	Doc      string
	Type     Type
	Required bool
}

// Type is what a member holds. Name is string, timestamp, integer, decimal,
// boolean, any (JSON as it came), list, map, or the name of a schema.
type Type struct {
	Name     string
	Nullable bool
	Elem     *Type  // of a list or map
	Known    string // the open list of values that a text is of
}

// Operation is one call.
type Operation struct {
	ID, Method, Path, Repeat string
}

// Currency is a code with its decimals.
type Currency struct {
	Code     string
	Decimals int
}

// repeatable are the words of x-repeat: whether a call may be made again when its
// answer is unclear. safe as it is, by its key, or never.
var repeatable = []string{"safe", "key", "never"}

// others are no calls of a client: operators make them, or people read them.
var others = []string{"getOpenapi", "getOpenapiJson", "receiveCallback", "receiveCallbackPut"}

// byHand are schemas that every SDK writes itself.
var byHand = []string{"Money"}

const refPrefix = "#/components/schemas/"

type reader struct {
	schemas map[string]*yaml.Node
	model   *Model
	answers map[string]bool
}

func read(text []byte) (*Model, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	root := document.Content[0]
	r := &reader{schemas: map[string]*yaml.Node{}, model: &Model{}, answers: map[string]bool{}}
	r.model.API = child(root, "info", "version").Value
	schemas := child(root, "components", "schemas")
	if schemas == nil || child(root, "paths") == nil {
		return nil, errors.New("no schemas or no paths")
	}
	for name, node := range pairs(schemas) {
		r.schemas[name] = node
	}
	r.mark(child(root, "components", "responses"))
	if err := r.operations(child(root, "paths")); err != nil {
		return nil, err
	}
	for name, node := range pairs(schemas) {
		if err := r.schema(name, node, r.answers[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	r.model.Currencies = currencies()
	return r.model, nil
}

// operations reads the paths, and marks what they answer with.
func (r *reader) operations(paths *yaml.Node) error {
	for path, item := range pairs(paths) {
		for method, op := range pairs(item) {
			id := child(op, "operationId")
			if id == nil || slices.Contains(others, id.Value) {
				continue
			}
			r.mark(child(op, "responses"))
			repeat := text(child(op, "x-repeat"))
			if !slices.Contains(repeatable, repeat) {
				return fmt.Errorf("%s: x-repeat does not say whether it may be repeated", id.Value)
			}
			r.model.Operations = append(r.model.Operations, Operation{id.Value, strings.ToUpper(method), path, repeat})
		}
	}
	return nil
}

// mark notes every schema that can be reached from a node.
func (r *reader) mark(node *yaml.Node) {
	if node == nil {
		return
	}
	if name, ok := reference(node); ok {
		if !r.answers[name] {
			r.answers[name] = true
			r.mark(r.schemas[name])
		}
		return
	}
	for _, c := range node.Content {
		r.mark(c)
	}
}

// schema adds an object or a list of values to the model; other schemas are
// written out where they are used.
func (r *reader) schema(name string, node *yaml.Node, answer bool) error {
	if slices.Contains(byHand, name) {
		return nil
	}
	s := &Schema{Name: name, Doc: text(child(node, "description")), Answer: answer}
	if values := child(node, "enum"); values != nil {
		for _, v := range values.Content {
			if v.Tag != "!!null" { // then the member is nullable
				s.Values = append(s.Values, v.Value)
			}
		}
		r.model.Schemas = append(r.model.Schemas, s)
		return nil
	}
	properties := child(node, "properties")
	if properties == nil {
		return nil
	}
	r.model.Schemas = append(r.model.Schemas, s)
	var required []string
	if list := child(node, "required"); list != nil {
		for _, n := range list.Content {
			required = append(required, n.Value)
		}
	}
	for member, property := range pairs(properties) {
		t, err := r.typeOf(property, name+"_"+member, answer)
		if err != nil {
			return fmt.Errorf("%s: %w", member, err)
		}
		s.Members = append(s.Members, Member{member, text(child(property, "description")), t, slices.Contains(required, member)})
	}
	return nil
}

// typeOf reads the type of a member. An object inside another becomes a schema
// of its own, named for both.
func (r *reader) typeOf(node *yaml.Node, name string, answer bool) (Type, error) {
	if target, ok := reference(node); ok {
		return r.named(target, answer)
	}
	if all := child(node, "allOf"); all != nil && len(all.Content) == 1 {
		return r.typeOf(all.Content[0], name, answer)
	}
	kind, nullable, err := kindOf(node)
	if err != nil {
		return Type{}, err
	}
	switch kind {
	case "string":
		if format := child(node, "format"); format != nil && format.Value == "date-time" {
			return Type{Name: "timestamp", Nullable: nullable}, nil
		}
		return Type{Name: "string", Nullable: nullable}, nil
	case "integer", "boolean":
		return Type{Name: kind, Nullable: nullable}, nil
	case "number":
		return Type{Name: "decimal", Nullable: nullable}, nil
	case "array":
		elem, err := r.typeOf(child(node, "items"), singular(name), answer)
		return Type{Name: "list", Nullable: nullable, Elem: &elem}, err
	case "object":
		return r.object(node, name, nullable, answer)
	}
	return Type{}, fmt.Errorf("a %s", kind)
}

// named is the type of a schema that is named.
func (r *reader) named(name string, answer bool) (Type, error) {
	target := r.schemas[name]
	if target == nil {
		return Type{}, fmt.Errorf("no schema %s", name)
	}
	kind, nullable, err := kindOf(target)
	if err != nil {
		return Type{}, err
	}
	if kind == "object" {
		return Type{Name: name, Nullable: nullable}, nil
	}
	t, err := r.typeOf(target, name, answer)
	if child(target, "enum") != nil {
		t.Known = name
	}
	return t, err
}

// object is the type of an object inside another.
func (r *reader) object(node *yaml.Node, name string, nullable, answer bool) (Type, error) {
	properties := child(node, "properties")
	if properties == nil {
		if elem := child(node, "additionalProperties"); elem != nil && elem.Kind == yaml.MappingNode {
			t, err := r.typeOf(elem, name, answer)
			return Type{Name: "map", Nullable: nullable, Elem: &t}, err
		}
		return Type{Name: "any", Nullable: nullable}, nil
	}
	if child(properties, "value") != nil && child(properties, "currency") != nil && len(properties.Content) == 4 {
		return Type{Name: "Money", Nullable: nullable}, nil
	}
	return Type{Name: name, Nullable: nullable}, r.schema(name, node, answer)
}

// kindOf returns the one type of a node and whether it may be null.
func kindOf(node *yaml.Node) (kind string, nullable bool, err error) {
	t := child(node, "type")
	switch {
	case t == nil:
		return "", false, errors.New("no type")
	case t.Kind == yaml.ScalarNode:
		return t.Value, false, nil
	}
	for _, n := range t.Content {
		if n.Value == "null" {
			nullable = true
		} else if kind != "" {
			return "", false, errors.New("two types")
		} else {
			kind = n.Value
		}
	}
	return kind, nullable, nil
}

func reference(node *yaml.Node) (string, bool) {
	ref := child(node, "$ref")
	if ref == nil {
		return "", false
	}
	return strings.CutPrefix(ref.Value, refPrefix)
}

// child follows names into mappings; nil if one is not there.
func child(node *yaml.Node, names ...string) *yaml.Node {
	for _, name := range names {
		var next *yaml.Node
		for key, value := range pairs(node) {
			if key == name {
				next = value
			}
		}
		if node = next; node == nil {
			return nil
		}
	}
	return node
}

// pairs goes through a mapping in the order of the document.
func pairs(node *yaml.Node) func(func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		if node == nil || node.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			if !yield(node.Content[i].Value, node.Content[i+1]) {
				return
			}
		}
	}
}

func text(node *yaml.Node) string {
	if node == nil {
		return ""
	}
	return strings.TrimSpace(node.Value)
}

// currencies are those of the service, found by asking for every code there is.
func currencies() []Currency {
	var out []Currency
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			for c := 'A'; c <= 'Z'; c++ {
				code := string([]rune{a, b, c})
				if n, ok := till.CurrencyDecimals(code); ok {
					out = append(out, Currency{code, n})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Currency) int { return cmp.Compare(a.Code, b.Code) })
	return out
}

// singular names one element of a list.
func singular(name string) string {
	if one, ok := strings.CutSuffix(name, "ies"); ok {
		return one + "y"
	}
	return strings.TrimSuffix(name, "s")
}
