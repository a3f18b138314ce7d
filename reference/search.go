package reference

import (
	"fmt"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

var (
	searchWord = regexp.MustCompile(`[\p{L}\p{N}_]+`)
	notText    = regexp.MustCompile(`(?s)<pre.*?</pre>|<nav.*?</nav>|<[^>]*>`)
)

// searchIndex returns what the script searches: a line for each page, with its path and
// title, and below an empty line each word with the numbers of its pages. Words that most
// pages have help nobody.
func (b *book) searchIndex(language string) ([]byte, error) {
	var out strings.Builder
	of := map[string][]int{}
	all := b.all[language]
	for i, p := range all {
		name, data, err := p.body()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%s\t%s\n", p.path, p.title)
		if name == "names.html" || name == "home.html" || name == "errors.html" {
			continue // they repeat what others explain
		}
		var text strings.Builder
		if err := b.template.ExecuteTemplate(&text, name, view{&frame{Language: language, word: b.words[language]}, data}); err != nil {
			return nil, err
		}
		plain := html.UnescapeString(notText.ReplaceAllString(text.String(), " "))
		for _, w := range searchWord.FindAllString(strings.ToLower(p.title+" "+plain), -1) {
			if n := of[w]; utf8.RuneCountInString(w) > 2 && (len(n) == 0 || n[len(n)-1] != i) {
				of[w] = append(n, i)
			}
		}
	}
	out.WriteString("\n")
	for _, w := range slices.Sorted(maps.Keys(of)) {
		if len(of[w]) > len(all)/3 {
			continue
		}
		fmt.Fprintf(&out, "%s\t%s\n", w, strings.Trim(fmt.Sprint(of[w]), "[]"))
	}
	return []byte(out.String()), nil
}
