package reference

import (
	"cmp"
	"slices"
	"strings"
)

// member is one member of an object, or a parameter, with its rules.
type member struct {
	Name, Type string
	Object     string // the schema that describes it
	Required   bool
	Rules      []string
	Pattern    string
	Values     []string
	Text       prose
}

// memberReader collects members. An object inside another one is written out with
// its path; a schema with a name of its own is described once per page.
type memberReader struct {
	b        *book
	language string
	out      []member
}

func (r *memberReader) word(key string) string { return r.b.words[r.language][key] }

func (r *memberReader) parameter(p *node) member {
	m := r.member(p.at("name").text(), p.at("schema"), p.at("required").text() == "true")
	if text := p.at("description").text(); text != "" {
		m.Text, _ = r.b.prose(r.language, text) // Markdown cannot fail into memory
	}
	m.Rules = append(m.Rules, r.word("in_"+p.at("in").text()))
	return m
}

// members adds the members of a schema.
func (r *memberReader) members(schema *node, prefix string) {
	properties := schema.at("properties")
	if properties == nil {
		return
	}
	var required []string
	if list := schema.at("required"); list != nil {
		required = list.texts()
	}
	for _, name := range properties.names {
		p := properties.at(name)
		m := r.member(prefix+name, p, slices.Contains(required, name))
		r.out = append(r.out, m)
		inner := p
		path := prefix + name
		for inner.at("items") != nil {
			inner, path = inner.at("items"), path+"[]"
		}
		if schemaName(inner) == "" {
			r.members(inner, path+".")
		}
	}
}

// member describes one member.
func (r *memberReader) member(name string, n *node, required bool) member {
	m := member{Name: name, Required: required}
	text := n.at("description").text()
	list := ""
	inner := n
	for {
		m.Rules = append(m.Rules, r.rules(inner)...)
		m.Pattern = cmp.Or(m.Pattern, inner.at("pattern").text())
		target := schemaName(inner)
		resolved := r.b.document.resolve(inner)
		if target != "" {
			if resolved.at("properties") != nil {
				m.Object = target
			}
			if text == "" {
				text = resolved.at("description").text()
			}
			m.Rules = append(m.Rules, r.rules(resolved)...)
			m.Pattern = cmp.Or(m.Pattern, resolved.at("pattern").text())
		}
		m.Values = append(m.Values, known(resolved)...)
		inner = resolved
		if inner.at("items") == nil {
			break
		}
		list += r.word("list_of") + " "
		inner = inner.at("items")
	}
	m.Type = list + r.typeOf(inner)
	if slices.Contains(r.b.document.resolve(n).at("type").texts(), "null") {
		m.Type += " " + r.word("or_null")
	}
	m.Rules = slices.Compact(m.Rules)
	m.Values = slices.DeleteFunc(m.Values, func(v string) bool { return v == "" })
	m.Text, _ = r.b.prose(r.language, text)
	return m
}

func (r *memberReader) typeOf(n *node) string {
	for _, t := range n.at("type").texts() {
		if t == "string" && n.at("format").text() != "" {
			if word := r.word("type_" + n.at("format").text()); word != "" {
				return word
			}
		}
		if word := r.word("type_" + t); word != "" {
			return word
		}
	}
	return r.word("type_any")
}

// bounds are the rules that the document writes as a number, in pairs.
var bounds = []struct{ least, most, word string }{
	{"minLength", "maxLength", "characters"}, {"minItems", "maxItems", "items"}, {"minProperties", "maxProperties", "members"}, {"minimum", "maximum", ""},
}

func (r *memberReader) rules(n *node) []string {
	var out []string
	for _, b := range bounds {
		least, most := n.at(b.least).text(), n.at(b.most).text()
		unit := strings.TrimSuffix(" "+r.word(b.word), " ")
		switch {
		case least != "" && most != "":
			out = append(out, least+" "+r.word("to")+" "+most+unit)
		case most != "":
			out = append(out, r.word("at_most")+" "+most+unit)
		case least == "1" && b.word != "":
			out = append(out, r.word("not_empty"))
		case least != "" && least != "0":
			out = append(out, r.word("at_least")+" "+least+unit)
		}
	}
	if over := n.at("exclusiveMinimum").text(); over != "" {
		out = append(out, r.word("more_than")+" "+over)
	}
	return out
}

// objects describes schemas and those that they use, each once, in the order in
// which they are met.
func (b *book) objects(language string, names []string) ([]objectView, error) {
	var out []objectView
	seen := map[string]bool{"": true}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		n := b.document.schema(name)
		text, err := b.prose(language, n.at("description").text())
		if err != nil {
			return nil, err
		}
		r := memberReader{b: b, language: language}
		r.members(n, "")
		out = append(out, objectView{Name: name, Text: text, Values: known(n), Members: r.out})
		for _, m := range r.out {
			names = append(names, m.Object)
		}
	}
	return out, nil
}
