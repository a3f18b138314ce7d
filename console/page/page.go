package page

import (
	"embed"
	"fmt"
	"html/template"
	"sync"

	"till/console/assets"
)

//go:embed *.html
var files embed.FS

// templates are parsed when a page is first asked for, and then shared: what
// differs between two visits is in the data, never in a function.
var templates = struct {
	sync.Mutex
	byName map[string]*template.Template
}{byName: map[string]*template.Template{}}

// Template returns the template of a page: the layout, the parts and its own file.
func Template(name string) (*template.Template, error) {
	templates.Lock()
	defer templates.Unlock()
	if t := templates.byName[name]; t != nil {
		return t, nil
	}
	t, err := template.New(name).Funcs(template.FuncMap{"asset": assets.Path}).
		ParseFS(files, "layout.html", "part_*.html", name+".html")
	if err != nil {
		return nil, fmt.Errorf("page %s: %w", name, err)
	}
	templates.byName[name] = t
	return t, nil
}
