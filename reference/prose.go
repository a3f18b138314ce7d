package reference

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/BurntSushi/toml"

	"till/docs"
)

// prose is a text of the OpenAPI document on a page.
type prose struct {
	English string // as the document has it
	HTML    template.HTML
	Lang    string // the language of HTML, if it is not that of the page
}

// frenchTexts has each text of the document in French. It is found by the English text:
// a changed sentence has no French until somebody writes it.
const frenchTexts = "reference.fr.toml"

func readTexts() (map[string]string, error) {
	var list struct{ Text []struct{ En, Fr string } }
	if _, err := toml.DecodeFS(docs.Files, frenchTexts, &list); err != nil {
		return nil, err
	}
	out := make(map[string]string, len(list.Text))
	for _, t := range list.Text {
		en := oneLine(t.En)
		if out[en] != "" || strings.TrimSpace(t.Fr) == "" {
			return nil, fmt.Errorf("%s: %q is there twice, or without its French", frenchTexts, en)
		}
		out[en] = t.Fr
	}
	return out, nil
}

// oneLine is a text without its line breaks, by which it is found.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// prose renders a text of the document in the language of a page, and in English if
// nobody has translated it.
func (b *book) prose(language, english string) (p prose, err error) {
	p.English = strings.TrimSpace(english)
	text := p.English
	if fr := b.texts[oneLine(text)]; fr != "" && language == "fr" {
		text = fr
	} else if text != "" && language != "en" {
		p.Lang = "en"
	}
	p.HTML, err = b.toHTML(language, text)
	return p, err
}
