package reference

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"till/api"
)

// shownTexts returns every text of the document that the pages show, in their order.
func shownTexts(t *testing.T, b *book) (all []string) {
	t.Helper()
	add := func(p prose) {
		if p.English != "" && !slices.Contains(all, p.English) {
			all = append(all, p.English)
		}
	}
	members := func(list []member) {
		for _, m := range list {
			add(m.Text)
		}
	}
	for _, tag := range b.document.root.at("tags").items {
		_, data, err := b.tagPage("fr", tag.at("name").text())
		if err != nil {
			t.Fatal(err)
		}
		v := data.(tagView)
		add(v.Text)
		for _, c := range v.Calls {
			add(c.Text)
			add(c.Scope)
			members(c.Parameters)
			members(c.Members)
			for _, a := range c.Answers {
				add(a.Text)
			}
		}
		for _, o := range v.Objects {
			add(o.Text)
			members(o.Members)
		}
	}
	return all
}

var wordsKept = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)")

// kept returns what stands in a text in every language: code and the ends of links.
func kept(text string) []string {
	return slices.Sorted(slices.Values(wordsKept.FindAllString(oneLine(text), -1)))
}

// Every text of the document that a page shows is there in French, with the same code,
// and no French is for a text that is gone.
func TestEveryTextIsFrench(t *testing.T) {
	t.Parallel()
	b, err := New(Config{OpenAPI: api.OpenJSON, BaseURL: "https://pay.example.com/v1"}).book()
	if err != nil {
		t.Fatal(err)
	}
	all := shownTexts(t, b)
	if len(all) < 360 {
		t.Fatalf("only %d texts are shown", len(all))
	}
	gone := maps.Clone(b.texts)
	for _, en := range all {
		fr := b.texts[oneLine(en)]
		delete(gone, oneLine(en))
		if fr == "" {
			t.Errorf("docs/%s has no French for a text of api/openapi.yaml. Write it there:\n\n[[text]]\nen = '''\n%s'''\nfr = '''\n'''", frenchTexts, en)
		} else if a, b := kept(en), kept(fr); !slices.Equal(a, b) {
			t.Errorf("docs/%s has other code in French:\n%s\n%q\n%q", frenchTexts, en, a, b)
		}
	}
	for _, en := range slices.Sorted(maps.Keys(gone)) {
		t.Errorf("docs/%s has French for a text that no page shows any more; take it away, or give it the new words:\n%s", frenchTexts, en)
	}
}

// A text that nobody has translated is shown in English and says so, and only that one.
func TestTextWithoutFrench(t *testing.T) {
	t.Parallel()
	b := &book{Site: New(Config{}), texts: map[string]string{"What you call it.": "Comment vous l’appelez."}}
	for _, c := range []struct{ language, english, want, lang string }{
		{"fr", "What you\ncall it. ", "<p>Comment vous l’appelez.</p>\n", ""},
		{"fr", "A new `word`.", "<p>A new <code>word</code>.</p>\n", "en"},
		{"fr", "", "", ""},
		{"en", "What you call it.", "<p>What you call it.</p>\n", ""},
	} {
		if p, err := b.prose(c.language, c.english); err != nil || string(p.HTML) != c.want || p.Lang != c.lang {
			t.Errorf("%s %q: %q in %q, %v", c.language, c.english, p.HTML, p.Lang, err)
		}
	}
}

// A page shows English only where it says so.
func TestFrenchPagesMarkEnglish(t *testing.T) {
	t.Parallel()
	s := New(Config{OpenAPI: api.OpenJSON, BaseURL: "https://pay.example.com/v1"})
	c, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, path := range c.pages {
		name, ok := strings.CutPrefix(path, Prefix+"/fr/reference/")
		if !ok {
			continue
		}
		f := c.files["/fr/reference/"+name]
		if err := f.get(); err != nil {
			t.Fatal(err)
		}
		pages++
		_, main, _ := strings.Cut(string(f.raw), "<main")
		if strings.Contains(main, ` lang="en"`) {
			t.Errorf("%s shows English", path)
		}
	}
	if pages < 10 {
		t.Errorf("only %d pages were looked at", pages)
	}
}
