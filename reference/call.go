package reference

import (
	"fmt"
	"slices"
	"strings"
)

// tagView is the page of one tag.
type tagView struct {
	Text    prose
	Calls   []callView
	Objects []objectView
}

// callView is one call.
type callView struct {
	ID, Title, Verb, Path string
	Webhook               bool
	Repeat                string
	Text, Scope           prose
	Parameters, Members   []member
	Request               string
	Answers               []answerView
	Errors                []link
	Examples              []example
}

// answerView is one good answer of a call.
type answerView struct {
	Status, Object, Example string
	Text                    prose
}

// objectView is a schema.
type objectView struct {
	Name    string
	Text    prose
	Values  []string
	Members []member
}

func (b *book) tagTitle(language, tag string) string {
	if word := b.words[language]["tag_"+slug(tag)]; word != "" {
		return word
	}
	return tag
}

// tagPage makes the page of a tag: its calls, and the objects that they answer with.
func (b *book) tagPage(language, tag string) (string, any, error) {
	var v tagView
	var err error
	for _, t := range b.document.root.at("tags").items {
		if t.at("name").text() == tag {
			if v.Text, err = b.prose(language, t.at("description").text()); err != nil {
				return "", nil, err
			}
		}
	}
	var names []string
	for _, o := range b.document.operations {
		if o.tag != tag {
			continue
		}
		c, err := b.call(language, o)
		if err != nil {
			return "", nil, err
		}
		v.Calls = append(v.Calls, c)
		for _, a := range c.Answers {
			names = append(names, a.Object)
		}
		for _, m := range slices.Concat(c.Members, c.Parameters) {
			names = append(names, m.Object)
		}
	}
	v.Objects, err = b.objects(language, names)
	return "tag.html", v, err
}

// call makes the part of a page about one call.
func (b *book) call(language string, o *operation) (callView, error) {
	v := callView{ID: o.id, Title: b.callTitle(language, o), Verb: o.verb, Path: o.path, Webhook: o.webhook, Repeat: o.node.at("x-repeat").text(), Examples: b.calls[o.id]}
	text, scope := splitScope(o.node.at("description").text())
	var err error
	if v.Text, err = b.prose(language, text); err != nil {
		return v, err
	}
	if v.Scope, err = b.prose(language, scope); err != nil {
		return v, err
	}
	m := memberReader{b, language, nil}
	for _, p := range o.parameters {
		v.Parameters = append(v.Parameters, m.parameter(p))
	}
	if body := b.document.resolve(o.node.at("requestBody")).at("content", "application/json"); body != nil {
		m.out = nil
		m.members(b.document.resolve(body.at("schema")), "")
		v.Members = m.out
		v.Request = b.firstExample(body)
		if name := schemaName(body.at("schema")); o.webhook && name != "" {
			v.Members, v.Answers = nil, append(v.Answers, answerView{Status: "body", Object: name})
		}
	}
	return v, b.answers(language, o, &v)
}

// answers adds what the call answers with: good answers, then the codes of errors.
func (b *book) answers(language string, o *operation, v *callView) error {
	responses := o.node.at("responses")
	for _, status := range responses.names {
		r := b.document.resolve(responses.at(status))
		if status[0] == '2' {
			a := answerView{Status: status}
			var err error
			if a.Text, err = b.prose(language, r.at("description").text()); err != nil {
				return err
			}
			if content := r.at("content", "application/json"); content != nil {
				a.Object, a.Example = schemaName(content.at("schema")), b.firstExample(content)
			}
			v.Answers = append(v.Answers, a)
			continue
		}
		if examples := r.at("content", "application/problem+json", "examples"); examples != nil {
			for _, name := range examples.names {
				code := b.document.resolve(examples.at(name)).at("value", "code").text()
				l := link{fmt.Sprintf("%s %s", status, code), "/errors/" + code}
				if !slices.Contains(v.Errors, l) {
					v.Errors = append(v.Errors, l)
				}
			}
		}
	}
	return nil
}

func (b *book) callTitle(language string, o *operation) string {
	if word := b.words[language]["call_"+o.id]; word != "" {
		return word
	}
	return o.node.at("summary").text()
}

// splitScope takes the paragraph about the scope out of a description.
func splitScope(text string) (rest, scope string) {
	var kept []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if after, ok := strings.CutPrefix(paragraph, "Scope: "); ok {
			scope = after
		} else {
			kept = append(kept, paragraph)
		}
	}
	return strings.Join(kept, "\n\n"), scope
}

// firstExample returns the first example of a body as JSON.
func (b *book) firstExample(content *node) string {
	if examples := content.at("examples"); examples != nil && len(examples.names) > 0 {
		if value := b.document.resolve(examples.at(examples.names[0])).at("value"); value != nil {
			return value.indented()
		}
	}
	return ""
}
