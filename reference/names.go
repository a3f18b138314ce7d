package reference

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

var (
	listItem = regexp.MustCompile(`<li>((?:<code>[^<]+</code>(?:, )?)+) ?:`)
	codeWord = regexp.MustCompile(`<code>([^<]+)</code>`)
)

// listed returns the values that a description lists, each before a colon: where a list
// is open, the document has them in its text.
func listed(text string) []string {
	var out []string
	for _, item := range listItem.FindAllStringSubmatch(text, -1) {
		for _, word := range codeWord.FindAllStringSubmatch(item[1], -1) {
			out = append(out, word[1])
		}
	}
	return out
}

// name is a line of the list of all names, with the places that explain it.
type name struct {
	Name   string
	Places []link
}

// names lists every name of the API: calls, paths, objects, members, values, codes.
func (b *book) names(language string) []name {
	places := map[string][]link{}
	add := func(text, where, path string) {
		if l := (link{where, path}); text != "" && !slices.Contains(places[text], l) {
			places[text] = append(places[text], l)
		}
	}
	for _, tag := range b.document.root.at("tags").items {
		title := tag.at("name").text()
		_, data, err := b.tagPage(language, title)
		if err != nil {
			continue // the page itself says it
		}
		v, page := data.(tagView), "/reference/"+slug(title)
		members := func(list []member, at string) {
			for _, m := range list {
				short := m.Name[strings.LastIndexByte(m.Name, '.')+1:]
				add(short, at, page+"#"+at)
				for _, text := range append(listed(string(m.Text.HTML)), m.Values...) {
					add(text, at, page+"#"+at)
				}
			}
		}
		for _, c := range v.Calls {
			add(c.ID, c.Title, page+"#"+c.ID)
			if !c.Webhook {
				add(c.Path, c.Verb, page+"#"+c.ID)
			}
			members(c.Members, c.ID)
			members(c.Parameters, c.ID)
		}
		for _, o := range v.Objects {
			add(o.Name, b.tagTitle(language, title), page+"#"+o.Name)
			members(o.Members, o.Name)
			for _, value := range o.Values {
				add(value, o.Name, page+"#"+o.Name)
			}
		}
	}
	for _, e := range b.errors.list {
		add(e.Code, b.words[language]["error"], "/errors/"+e.Path)
	}
	out := make([]name, 0, len(places))
	for text, at := range places {
		out = append(out, name{text, at})
	}
	slices.SortFunc(out, func(a, b name) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return out
}
