package pay

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"strings"

	"till/checkout"
)

//go:embed html
var files embed.FS

// style is the one style sheet. It is in each page, and allowed by its hash alone.
var style = func() string {
	b, err := files.ReadFile("html/style.css")
	if err != nil {
		panic(err) // it is compiled in
	}
	return strings.ReplaceAll(string(b), "\n", "")
}()

// policy is the Content-Security-Policy of every answer.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

// fileOf has the template of each face that has no file of its own name.
var fileOf = map[checkout.Face]string{
	checkout.FaceCheck: "wait", checkout.FaceBack: "end", checkout.FaceSlow: "again", checkout.FaceSpent: "end",
	checkout.FaceClosed: "end", checkout.FaceDone: "end", checkout.FaceOff: "end",
}

// templates are the pages, by file.
var templates = func() map[string]*template.Template {
	layout := template.Must(template.ParseFS(files, "html/layout.html"))
	out := map[string]*template.Template{}
	for _, name := range []string{"form", "sure", "calling", "prompt", "wait", "busy", "paid", "again", "end"} {
		out[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, "html/"+name+".html"))
	}
	out["plain"] = template.Must(template.ParseFS(files, "html/plain.html"))
	return out
}()

// templateOf returns the template of a face.
func templateOf(f checkout.Face) *template.Template {
	if name := fileOf[f]; name != "" {
		return templates[name]
	}
	return templates[string(f)]
}

// Style returns the style sheet as markup: it is ours.
func Style() template.CSS { return template.CSS(style) }
