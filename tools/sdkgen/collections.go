package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	yaml "github.com/oasdiff/yaml3"
)

// request is one call in a collection of Postman or Bruno.
type request struct {
	id, tag, name, method, path, repeat string
	query                               []string // names of optional parameters, with an example
	body                                string   // JSON, "" for none
	statuses                            []int    // that the document names
}

// collections returns the files of both collections.
func collections(text []byte) (map[string][]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	root := document.Content[0]
	var tags []string
	for _, tag := range child(root, "tags").Content {
		tags = append(tags, textAt(tag, "name"))
	}
	requests, err := readRequests(root)
	if err != nil {
		return nil, err
	}
	// In this order a run from the top succeeds: what makes something comes first, and
	// what deletes it last.
	slices.SortStableFunc(requests, func(a, b request) int {
		return cmp.Or(cmp.Compare(slices.Index(tags, a.tag), slices.Index(tags, b.tag)), cmp.Compare(a.rank(), b.rank()))
	})
	out := map[string][]byte{}
	if out[filepath.Join("api", "postman.json")], err = postman(tags, requests); err != nil {
		return nil, err
	}
	for name, file := range bruno(tags, requests) {
		out[filepath.Join("api", "bruno", name)] = []byte(file)
	}
	return out, nil
}

func textAt(n *yaml.Node, names ...string) string { return text(child(n, names...)) }

func readRequests(root *yaml.Node) ([]request, error) {
	var out []request
	for path, item := range pairs(child(root, "paths")) {
		for method, op := range pairs(item) {
			id := textAt(op, "operationId")
			if id == "" || strings.HasPrefix(id, "receive") {
				continue // operators call these
			}
			r := request{id: id, tag: child(op, "tags").Content[0].Value, name: textAt(op, "summary"), method: strings.ToUpper(method), path: path, repeat: textAt(op, "x-repeat")}
			for status := range pairs(child(op, "responses")) {
				n, err := strconv.Atoi(status)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", id, err)
				}
				r.statuses = append(r.statuses, n)
			}
			if list := child(op, "parameters"); list != nil {
				for _, p := range list.Content {
					if p = resolve(root, p); textAt(p, "in") == "query" {
						r.query = append(r.query, textAt(p, "name")+"="+textAt(p, "example"))
					}
				}
			}
			for _, example := range pairs(child(op, "requestBody", "content", "application/json", "examples")) {
				var b bytes.Buffer
				if err := writeJSON(&b, child(resolve(root, example), "value")); err != nil {
					return nil, fmt.Errorf("%s: %w", id, err)
				}
				var indented bytes.Buffer
				if err := json.Indent(&indented, b.Bytes(), "", "  "); err != nil {
					return nil, err
				}
				r.body = r.variables(indented.String())
				break
			}
			out = append(out, r)
		}
	}
	return out, nil
}

func resolve(root, n *yaml.Node) *yaml.Node {
	for child(n, "$ref") != nil {
		n = child(root, strings.Split(strings.TrimPrefix(textAt(n, "$ref"), "#/"), "/")...)
	}
	return n
}

// variables puts the collection's variables into an example.
func (r request) variables(body string) string {
	var lines []string
	for line := range strings.SplitSeq(body, "\n") {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		value := map[string]string{`"idempotency_key"`: "{{idempotency_key}}", `"reference"`: "{{order}}", `"endpoint_id"`: "{{endpoint_id}}"}[name]
		if value != "" && (r.repeat == "key" || name == `"endpoint_id"`) {
			end := ""
			if strings.HasSuffix(line, ",") {
				end = ","
			}
			line = line[:strings.Index(line, name)] + name + ": \"" + value + "\"" + end
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (r request) rank() int {
	inside := strings.Contains(r.path, "{")
	switch {
	case r.method == "POST" && !inside:
		return 0
	case r.method == "GET":
		return 1
	case r.method == "PATCH":
		return 2
	case r.method == "POST":
		return 3
	}
	return 4
}

// url returns the path with the collection's variables. An event's id and the like
// come from the answers of earlier calls.
func (r request) url() string {
	return "{{base_url}}" + strings.NewReplacer("{", "{{", "}", "}}").Replace(r.path)
}

// kept is the variable that an answer's id is kept in, "" for none.
func (r request) kept() string {
	return map[string]string{"createPayment": "payment_id", "createPayout": "payout_id", "createWebhookEndpoint": "endpoint_id", "createApiKey": "key_id", "listEvents": "event_id"}[r.id]
}

// idOf is where an answer has the id that is kept.
func (r request) idOf(body string) string {
	if r.id == "listEvents" {
		return "(" + body + ".items[0] || {}).id"
	}
	return body + ".id"
}

// mayFail are calls that a run from the top cannot prepare: the payout may have been
// sent, no prompt may be open, the endpoint has been deleted.
var mayFail = []string{"cancelPayout", "decideSandboxPrompt", "disableSandboxEndpoint"}

// expected are the statuses that a run takes for right.
func (r request) expected() string {
	var out []string
	for _, s := range r.statuses {
		if s < 300 || slices.Contains(mayFail, r.id) && s < 500 {
			out = append(out, strconv.Itoa(s))
		}
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// keyName is the variable that holds the key of an order: payments and payouts have
// keys of their own.
func (r request) keyName() string { return strings.Trim(r.path, "/") + "_key_" }
