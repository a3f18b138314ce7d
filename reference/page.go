package reference

import (
	"bytes"
	"html"
	"html/template"
	"regexp"
	"strings"
)

// page is one page before it is rendered. body returns the name of its template
// and what that shows.
type page struct {
	path  string
	title string
	body  func() (name string, data any, err error)
}

// section is a part of the menu.
type section struct {
	Title string
	Links []link
}

type link struct{ Title, Path string }

// frame is what the layout shows around a body.
type frame struct {
	Language, Other, OtherPath string
	Root                       string // of this language's pages
	Files                      string // where style and script are
	Path, Title                string
	Home                       bool
	Base, Packages             string // of this service: its API, the SDKs' packages
	Toc                        []link // the headings of a guide; their paths are fragments
	Before, After              *link  // in the order of the menu
	Menu                       []section
	Body                       template.HTML
	word                       map[string]string
}

// W returns a word of the frame's language.
func (f *frame) W(key string) string { return f.word[key] }

// guides are the pages of Markdown, by section of the menu. The file of each is
// pages/LANGUAGE/PATH.md, with "-" for "/".
var guides = []struct {
	section string
	paths   []string
}{
	{"menu_start", []string{"/start/curl", "/start/go", "/start/typescript", "/start/php", "/start/python"}},
	{"menu_guides", []string{"/collecting", "/checkout", "/webhooks", "/sweeping", "/payouts", "/refunds", "/reconciling", "/testing", "/keys", "/moving"}},
	{"menu_safety", []string{"/leaked-key", "/going-live"}},
}

// pages returns all pages of a language in reading order, and makes its menu.
func (b *book) pages(language string) []page {
	word := b.words[language]
	var out []page
	var menu []section
	add := func(s *section, p page) {
		out = append(out, p)
		if s != nil {
			short, _, _ := strings.Cut(p.title, ":") // "Go: from nothing to a paid order"
			s.Links = append(s.Links, link{strings.TrimSpace(short), p.path})
		}
	}
	add(nil, page{"/", word["title"], func() (string, any, error) { return "home.html", b.menus[language], nil }})
	for _, g := range guides {
		s := section{Title: word[g.section]}
		for _, path := range g.paths {
			m := readMarkdown(language, path)
			add(&s, page{path, m.title, func() (string, any, error) {
				html, err := m.html(b, language)
				return "guide.html", html, err
			}})
		}
		menu = append(menu, s)
	}
	sdks := section{Title: "SDK"}
	for _, name := range []string{"go", "typescript", "php", "python"} {
		m := b.readSDK(name)
		add(&sdks, page{"/sdk/" + name, m.title, func() (string, any, error) {
			html, err := m.html(b, language)
			return "sdk.html", html, err
		}})
	}
	menu = append(menu, sdks)
	s := section{Title: word["menu_reference"]}
	for _, tag := range b.document.root.at("tags").items {
		name := tag.at("name").text()
		add(&s, page{"/reference/" + slug(name), b.tagTitle(language, name), func() (string, any, error) { return b.tagPage(language, name) }})
	}
	add(&s, page{"/names", word["names"], func() (string, any, error) { return "names.html", b.names(language), nil }})
	add(&s, page{"/errors/", word["errors"], func() (string, any, error) { return "errors.html", b.errorList(language), nil }})
	b.menus[language] = append(menu, s)
	for _, e := range b.errors.list {
		add(nil, page{"/errors/" + e.Path, e.Code, func() (string, any, error) { return b.errorPage(language, e) }})
	}
	return out
}

// render writes a page.
func (b *book) render(language string, p page) ([]byte, error) {
	name, data, err := p.body()
	if err != nil {
		return nil, err
	}
	origin := strings.TrimSuffix(b.c.BaseURL, "/v1")
	f := &frame{Language: language, Path: p.path, Title: p.title, Menu: b.menus[language], Files: b.root, Root: b.root + languagePath(language), Home: p.path == "/", word: b.words[language],
		Base: b.c.BaseURL, Packages: origin + "/sdk"}
	f.Before, f.After = neighbours(f.Menu, p.path)
	for _, other := range languages {
		if other != language {
			f.Other, f.OtherPath = other, b.root+languagePath(other)+p.path
		}
	}
	var body bytes.Buffer
	if err := b.template.ExecuteTemplate(&body, name, view{f, data}); err != nil {
		return nil, err
	}
	text := body.String()
	if name == "guide.html" || name == "sdk.html" {
		f.Toc = headings(text)
	}
	f.Body = template.HTML(namedHeading.ReplaceAllString(text, `<h$1 id="$2">$3 <a class="here" href="#$2" aria-label="$2">#</a></h$1>`))
	var out bytes.Buffer
	err = b.template.ExecuteTemplate(&out, "layout.html", f)
	return out.Bytes(), err
}

var (
	namedHeading = regexp.MustCompile(`<h([23]) id="([^"]*)">(.*?)</h[23]>`)
	markup       = regexp.MustCompile(`<[^>]*>`)
)

// headings returns the parts of a text, if it has enough of them to choose from.
func headings(text string) (toc []link) {
	for _, m := range namedHeading.FindAllStringSubmatch(text, -1) {
		if m[1] == "2" {
			toc = append(toc, link{html.UnescapeString(markup.ReplaceAllString(m[3], "")), "#" + m[2]})
		}
	}
	if len(toc) < 3 {
		return nil
	}
	return toc
}

// neighbours returns the pages before and after one in the menu.
func neighbours(menu []section, path string) (before, after *link) {
	var all []link
	for _, s := range menu {
		all = append(all, s.Links...)
	}
	for i := range all {
		if all[i].Path != path {
			continue
		}
		if i > 0 {
			before = &all[i-1]
		}
		if i+1 < len(all) {
			after = &all[i+1]
		}
	}
	return before, after
}

// view is what the template of a body is given.
type view struct {
	*frame
	Data any
}

// memberList is what the template of members is given.
type memberList struct {
	Frame   view
	Members []member
}

func pair(f view, members []member) memberList { return memberList{f, members} }

// links gives the links of a text in Markdown the path of the reader's language.
func (b *book) links(language, html string) string {
	return strings.ReplaceAll(html, `href="`+Prefix+"/", `href="`+b.root+languagePath(language)+"/")
}
