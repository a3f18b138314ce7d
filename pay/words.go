package pay

import (
	_ "embed"

	"till/console/look"
	"till/console/words"
)

var (
	//go:embed words/en.toml
	english string
	//go:embed words/fr.toml
	french string
)

// catalogues are what pages say, by language.
var catalogues = map[string]*words.Catalogue{
	look.English: words.MustParse(look.English, english),
	look.French:  words.MustParse(look.French, french),
}
