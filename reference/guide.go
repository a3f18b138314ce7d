package reference

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"till/docs"
)

// markdown renders guides and descriptions. Raw HTML is left out. A heading has
// the id that it names: ## Duplicates {#duplicates}.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithHeadingAttribute()))

// plainMarkdown is for texts whose headings name no ids.
var plainMarkdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// guide is a page of Markdown.
type guide struct {
	file, title, text string
	plain             bool // its headings name no ids
	err               error
}

var (
	htmlComment = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
	includeLine = regexp.MustCompile(`(?m)^\{\{(\S+)\}\}$`)
	// Blocks of code that follow each other, each below the name of its language.
	tab        = regexp.MustCompile(`(?s)<h4>([A-Za-z]+)</h4>\s*(<pre tabindex="0">.*?</pre>)`)
	tabs       = regexp.MustCompile(`(?s)(?:<h4>[A-Za-z]+</h4>\s*<pre tabindex="0">.*?</pre>\s*)+`)
	attributes = regexp.MustCompile(`\s*\{#[^}]*\}$`)
)

func readMarkdown(language, path string) *guide {
	g := &guide{file: "pages/" + language + "/" + strings.ReplaceAll(strings.Trim(path, "/"), "/", "-") + ".md"}
	text, err := docs.Files.ReadFile(g.file)
	if err != nil {
		g.err = err
		return g
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	g.title = attributes.ReplaceAllString(strings.TrimPrefix(head, "# "), "")
	g.text = htmlComment.ReplaceAllString(rest, "")
	return g
}

// sdkLinks are where the links of the SDKs' guides lead on the pages.
var sdkLinks = strings.NewReplacer("](integrating.md)", "](/docs/collecting)", "](webhooks.md)", "](/docs/webhooks)", "](payouts.md)", "](/docs/payouts)", "](refunds.md)", "](/docs/refunds)", "](payouts.md#how-it-ends)", "](/docs/payouts)",
	"](pages.md)", "](/docs/checkout)", "](pages.md#by-a-teller)", "](/docs/checkout#sdk)", "](pages.md#links)", "]("+repository+"/docs/guide/pages.md#links)",
	"](local-tools.md)", "]("+repository+"/docs/guide/local-tools.md)", "](../../", "]("+repository+"/")

const repository = "https://github.com/till-project/till/blob/main"

// readSDK reads the guide of an SDK, which is in English.
func (b *book) readSDK(name string) *guide {
	g := &guide{file: "guide/sdk-" + name + ".md", plain: true}
	text, err := docs.Files.ReadFile(g.file)
	if err != nil {
		g.err = err
		return g
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	g.title = strings.TrimPrefix(head, "# ")
	g.text = sdkLinks.Replace(htmlComment.ReplaceAllString(rest, ""))
	if b.c.BaseURL != "" {
		g.text = strings.ReplaceAll(g.text, "http://127.0.0.1:8080", strings.TrimSuffix(b.c.BaseURL, "/v1"))
	}
	return g
}

func (g *guide) html(b *book, language string) (template.HTML, error) {
	if g.err != nil {
		return "", g.err
	}
	var missing error
	text := includeLine.ReplaceAllStringFunc(g.text, func(line string) string {
		text, err := docs.Files.ReadFile("_examples/" + includeLine.FindStringSubmatch(line)[1])
		if err != nil {
			missing = fmt.Errorf("%s: %w", g.file, err)
		}
		return strings.TrimSuffix(string(text), "\n")
	})
	if missing != nil {
		return "", missing
	}
	if b.c.BaseURL != "" {
		text = strings.ReplaceAll(text, exampleBase, b.c.BaseURL)
	}
	if g.plain {
		return b.convert(plainMarkdown, language, text)
	}
	return b.toHTML(language, text)
}

// exampleBase is the base address that the texts name; a page names the service's own.
const exampleBase = "https://pay.example.com/v1"

// toHTML renders Markdown for a page.
func (b *book) toHTML(language, text string) (template.HTML, error) {
	return b.convert(markdown, language, text)
}

func (b *book) convert(by goldmark.Markdown, language, text string) (template.HTML, error) {
	var out bytes.Buffer
	if err := by.Convert([]byte(text), &out); err != nil {
		return "", err
	}
	// What is wider than a small screen scrolls, and the keyboard can reach it.
	html := strings.NewReplacer(`<pre><code`, `<pre tabindex="0"><code`, `<table>`, `<div class="wide" tabindex="0"><table>`, `</table>`, `</table></div>`, `<th></th>`, `<td></td>`).Replace(out.String())
	html = tabs.ReplaceAllStringFunc(html, func(group string) string {
		return `<div class="langs">` + "\n" + tab.ReplaceAllString(group, `<section data-lang="$1"><h4>$1</h4>$2</section>`) + "</div>\n"
	})
	return template.HTML(b.links(language, html)), nil
}
