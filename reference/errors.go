package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"

	"github.com/BurntSushi/toml"

	"till/docs"
)

// errorText is what is known of one code.
type errorText struct {
	Code, Path string // the path ends in the code; one of errors[].code is below validation_failed
	Outcome    string // nothing or unclear
	Status     int
	En, Fr     []string // what it means, what to do
	answer     []byte
}

type errorTexts struct{ list []*errorText }

const fieldsBelow = "validation_failed"

// readErrors reads the texts of every code that the document names, in its order.
func readErrors(d *document) (*errorTexts, error) {
	var texts struct{ Code, Field map[string]*errorText }
	if _, err := toml.DecodeFS(docs.Files, "errors.toml", &texts); err != nil {
		return nil, err
	}
	file, err := docs.Files.ReadFile("answers.json")
	if err != nil {
		return nil, err
	}
	var answers map[string]struct {
		Status int
		Body   json.RawMessage
	}
	if err := json.Unmarshal(file, &answers); err != nil {
		return nil, fmt.Errorf("answers.json: %w", err)
	}
	out := &errorTexts{}
	add := func(texts map[string]*errorText, code, path string) error {
		e := texts[code]
		answer, ok := answers[path]
		if e == nil || len(e.En) != 2 || len(e.Fr) != 2 || !ok {
			return fmt.Errorf("the error %s has no texts or no answer", path)
		}
		e.Code, e.Path, e.Status, e.answer = code, path, answer.Status, answer.Body
		out.list = append(out.list, e)
		return nil
	}
	for _, code := range known(d.schema("ErrorCode")) {
		if err := add(texts.Code, code, code); err != nil {
			return nil, err
		}
	}
	for _, code := range known(d.schema("FieldErrorCode")) {
		if err := add(texts.Field, code, fieldsBelow+"/"+code); err != nil {
			return nil, err
		}
		texts.Field[code].Outcome = "nothing"
	}
	return out, nil
}

func (e *errorText) field() bool { return strings.Contains(e.Path, "/") }

func (e *errorText) texts(language string) []string {
	if language == "fr" {
		return e.Fr
	}
	return e.En
}

// errorView is a line of the list of errors, or a page.
type errorView struct {
	Code, Path, Outcome string
	Status              int
	Field               bool
	Means, Do           template.HTML
	Answer              string
}

func (b *book) errorView(language string, e *errorText) (errorView, error) {
	v := errorView{Code: e.Code, Path: e.Path, Outcome: e.Outcome, Status: e.Status, Field: e.field()}
	var err error
	if v.Means, err = b.toHTML(language, e.texts(language)[0]); err != nil {
		return v, err
	}
	if v.Do, err = b.toHTML(language, e.texts(language)[1]); err != nil {
		return v, err
	}
	var answer bytes.Buffer
	if err := json.Indent(&answer, e.answer, "", "  "); err != nil {
		return v, err
	}
	v.Answer = strings.ReplaceAll(answer.String(), "http://till.test/", strings.TrimSuffix(b.c.BaseURL, "v1"))
	return v, nil
}

func (b *book) errorPage(language string, e *errorText) (string, any, error) {
	v, err := b.errorView(language, e)
	return "error.html", v, err
}

// errorList is the page of all errors: codes first, then those of members.
func (b *book) errorList(language string) [2][]errorView {
	var out [2][]errorView
	for _, e := range b.errors.list {
		v, err := b.errorView(language, e)
		if err != nil {
			continue // its own page says it
		}
		if e.field() {
			out[1] = append(out[1], v)
		} else {
			out[0] = append(out[0], v)
		}
	}
	return out
}
