package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	yaml "github.com/oasdiff/yaml3"
)

// decodeCase is an answer that every SDK reads and writes again as it was.
type decodeCase struct {
	From   string          `json:"from"`
	Schema string          `json:"schema"`
	JSON   json.RawMessage `json:"json"`
}

// answer is what a call answers with a status.
type answer struct {
	method string
	path   *regexp.Regexp
	status string
	schema string
}

// decodeVectors are the answers of api/testdata and the examples of the
// document, each once.
func decodeVectors(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, "api", "openapi.yaml"))
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	var cases []decodeCase
	seen := map[string]bool{}
	add := func(from, schema string, value []byte) error {
		var b bytes.Buffer
		if err := json.Compact(&b, value); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		if key := schema + b.String(); !seen[key] {
			seen[key] = true
			cases = append(cases, decodeCase{from, schema, b.Bytes()})
		}
		return nil
	}
	answers, err := documentAnswers(document.Content[0], add)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "api", "testdata", "*.txtar"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := goldenAnswers(file, answers, add); err != nil {
			return nil, err
		}
	}
	return lines("cases", cases)
}

// documentAnswers reads which schema each call answers with, and the examples.
func documentAnswers(root *yaml.Node, add func(from, schema string, value []byte) error) ([]answer, error) {
	var out []answer
	for path, item := range pairs(child(root, "paths")) {
		pattern := regexp.MustCompile("^/v1" + regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllString(path, "[^/]+") + "$")
		for method, op := range pairs(item) {
			for status, response := range pairs(child(op, "responses")) {
				content := child(response, "content", "application/json")
				schema, ok := reference(child(content, "schema"))
				if !ok {
					continue
				}
				out = append(out, answer{strings.ToUpper(method), pattern, status, schema})
				for name, example := range pairs(child(content, "examples")) {
					ref := child(example, "$ref")
					if ref == nil {
						continue
					}
					short := strings.TrimPrefix(ref.Value, "#/components/examples/")
					value := child(root, "components", "examples", short, "value")
					var v any
					if value == nil || value.Decode(&v) != nil {
						return nil, fmt.Errorf("%s %s: no example %s", method, path, name)
					}
					b, err := json.Marshal(v)
					if err != nil {
						return nil, err
					}
					if err := add("openapi.yaml "+short, schema, b); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return out, nil
}

var (
	section = regexp.MustCompile(`(?m)^-- (.+) --\n`)
	isJSON  = regexp.MustCompile(`(?m)^Content-Type: application/(problem\+)?json$`)
	number  = regexp.MustCompile(`: \{n\}`)
)

// goldenAnswers reads the answers of one file of api/testdata.
func goldenAnswers(file string, answers []answer, add func(from, schema string, value []byte) error) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	marks := section.FindAllSubmatchIndex(text, -1)
	method, path := "", ""
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		name, body := string(text[m[2]:m[3]]), string(text[m[1]:end])
		switch word, _, _ := strings.Cut(name, " "); word {
		case "request":
			line, _, _ := strings.Cut(body, "\n")
			method, path, _ = strings.Cut(line, " ")
			path, _, _ = strings.Cut(strings.Fields(path)[0], "?")
		case "create":
			method, path = "POST", "/v1/payments"
		case "pay":
			method, path = "POST", "/v1/payouts"
		case "response":
			head, value, found := strings.Cut(body, "\n\n")
			if !found || !isJSON.MatchString(head) {
				continue // an export, or nothing
			}
			status, _, _ := strings.Cut(head, " ")
			schema := ""
			if status[0] >= '4' {
				schema = "Problem"
			}
			for _, a := range answers {
				if a.method == method && a.status == status && a.path.MatchString(path) {
					schema = a.schema
				}
			}
			value = number.ReplaceAllString(value, ": 3")
			if schema == "" || !json.Valid([]byte(value)) {
				continue // an answer that is cut
			}
			if err := add(strings.TrimSuffix(filepath.Base(file), ".txtar"), schema, []byte(value)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lines writes a list with one entry on a line, which is read well in a
// difference.
func lines[C any](name string, cases []C) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"%s\": [\n", name)
	for i, c := range cases {
		var one bytes.Buffer
		e := json.NewEncoder(&one)
		e.SetEscapeHTML(false)
		if err := e.Encode(c); err != nil {
			return nil, err
		}
		b.Write(bytes.TrimRight(one.Bytes(), "\n"))
		if i+1 < len(cases) {
			b.WriteString(",")
		}
		b.WriteString("\n")
	}
	b.WriteString("]}\n")
	return b.Bytes(), nil
}
