// Package docs holds what the pages at /docs/ are made of: the guides in English
// and French (pages), what each error means (errors.toml) with an answer that the
// service gave (answers.json), the words around them (words.toml), the texts
// of the OpenAPI document in French (reference.fr.toml), and the programs
// whose parts the pages show (_examples; those in Go end in .txt, because another module compiles them), which tests run. Package reference renders
// them, and the guides of the SDKs. Of the folder guide the rest, and adr, are read in the repository only.
package docs

import "embed"

// Files is the content.
//
//go:embed pages _examples errors.toml answers.json words.toml reference.fr.toml guide/sdk-*.md
var Files embed.FS
