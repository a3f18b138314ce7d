package words

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"till"
	"till/console/look"
)

var (
	//go:embed en.toml
	english string
	//go:embed fr.toml
	french string
)

// Languages are those that the console speaks; the first is the default.
var Languages = []string{look.English, look.French}

// Catalogue is the texts of one language. It never changes.
type Catalogue struct {
	lang  string
	texts map[string]text
}

// text is what a key says: one is for a count that takes the singular, ""
// where the key has no plural.
type text struct{ one, other string }

var catalogues = map[string]*Catalogue{
	look.English: MustParse(look.English, english),
	look.French:  MustParse(look.French, french),
}

// For returns the catalogue of a language; of an unknown one, the default.
func For(lang string) *Catalogue {
	if c := catalogues[lang]; c != nil {
		return c
	}
	return catalogues[Languages[0]]
}

// MustParse reads a catalogue that was compiled in: it is good, or no test
// passes.
func MustParse(lang, file string) *Catalogue {
	var tables map[string]map[string]any
	if _, err := toml.Decode(file, &tables); err != nil {
		panic(fmt.Sprintf("words in %s: %v", lang, err))
	}
	c := &Catalogue{lang: lang, texts: map[string]text{}}
	for table, keys := range tables {
		for key, value := range keys {
			name := table + "." + key
			switch v := value.(type) {
			case string:
				c.texts[name] = text{other: c.typeset(v)}
			case map[string]any:
				one, _ := v["one"].(string)
				other, _ := v["other"].(string)
				if one == "" || other == "" || len(v) != 2 {
					panic(fmt.Sprintf("words in %s: %s is neither a text nor a plural", lang, name))
				}
				c.texts[name] = text{c.typeset(one), c.typeset(other)}
			default:
				panic(fmt.Sprintf("words in %s: %s is neither a text nor a plural", lang, name))
			}
		}
	}
	return c
}

// frenchSpaces keep a mark on the line of the word before it.
var frenchSpaces = strings.NewReplacer(" ;", "\u202f;", " ?", "\u202f?", " !", "\u202f!", " :", "\u00a0:", "« ", "«\u00a0", " »", "\u00a0»")

// typeset returns a text as it is printed.
func (c *Catalogue) typeset(text string) string {
	if c.lang == "fr" {
		return frenchSpaces.Replace(text)
	}
	return text
}

// Lang returns the catalogue's language.
func (c *Catalogue) Lang() string { return c.lang }

// Has reports whether the catalogue knows a key.
func (c *Catalogue) Has(key string) bool { _, ok := c.texts[key]; return ok }

// Keys returns every key, sorted.
func (c *Catalogue) Keys() []string { return slices.Sorted(maps.Keys(c.texts)) }

// T returns the text of a key with its places filled: name, value, name, value.
// A whole number called n picks the plural. A key that is not there is
// returned itself, so that a page shows what is missing instead of failing.
func (c *Catalogue) T(key string, args ...any) string {
	t, ok := c.texts[key]
	if !ok {
		return key
	}
	s := t.other
	if n, ok := count(args); ok && t.one != "" && c.singular(n) {
		s = t.one
	}
	if len(args) < 2 {
		return s
	}
	pairs := make([]string, 0, len(args))
	for i := 0; i+1 < len(args); i += 2 {
		pairs = append(pairs, "{"+fmt.Sprint(args[i])+"}", c.value(args[i+1]))
	}
	// One pass: a value that looks like a place is not filled again.
	return strings.NewReplacer(pairs...).Replace(s)
}

// value returns an argument as it is written in a text.
func (c *Catalogue) value(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int:
		return look.Count(c.lang, int64(v))
	case int64:
		return look.Count(c.lang, v)
	case till.Money:
		return look.Money(c.lang, v)
	}
	return fmt.Sprint(v)
}

// count returns the argument called n.
func count(args []any) (int64, bool) {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == "n" {
			switch n := args[i+1].(type) {
			case int:
				return int64(n), true
			case int64:
				return n, true
			}
		}
	}
	return 0, false
}

// singular reports whether a count takes the singular: 1, and in French 0.
func (c *Catalogue) singular(n int64) bool { return n == 1 || n == 0 && c.lang == look.French }
