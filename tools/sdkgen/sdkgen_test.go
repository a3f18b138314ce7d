package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	yaml "github.com/oasdiff/yaml3"
)

// What is generated is current: who changes the interface changes the SDKs.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	t.Parallel()
	files, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("nothing is generated")
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what api/openapi.yaml says: run go run ./sdkgen in tools", path)
		}
	}
	err = filepath.WalkDir("../../api/bruno", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && files[strings.TrimPrefix(filepath.ToSlash(path), "../../")] == nil {
			t.Errorf("%s is not made from api/openapi.yaml: delete it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The description has what linters ask for: a licence, an address of its own for each call, a
// declared tag, a summary, an answer for a refusal, and no component that nothing uses.
// 'make sdk-lint' runs a linter of others.
func TestTheDescriptionIsComplete(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"openapi.yaml", "openapi.open.yaml"} {
		text, err := os.ReadFile("../../api/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var document yaml.Node
		if err := yaml.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		for _, complaint := range complaints(document.Content[0], string(text)) {
			t.Errorf("%s: %s", name, complaint)
		}
	}
	var empty yaml.Node
	bad := `{info: {}, tags: [{name: a}], paths: {/x: {get: {operationId: x, tags: [b], responses: {"200": {}}}, put: {operationId: x}}}, components: {schemas: {Lonely: {}}}}`
	if err := yaml.Unmarshal([]byte(bad), &empty); err != nil {
		t.Fatal(err)
	}
	if found := complaints(empty.Content[0], bad); len(found) != 9 {
		t.Errorf("a bad description has %d complaints: %q", len(found), found)
	}
}

// complaints returns what a description lacks.
func complaints(root *yaml.Node, whole string) (found []string) {
	say := func(ok bool, words ...string) {
		if !ok {
			found = append(found, strings.Join(words, " "))
		}
	}
	say(textAt(root, "info", "license", "identifier") != "", "info has no license")
	tags, ids := map[string]bool{}, map[string]bool{}
	if list := child(root, "tags"); list != nil {
		for _, tag := range list.Content {
			tags[textAt(tag, "name")] = true
		}
	}
	for path, item := range pairs(child(root, "paths")) {
		for method, operation := range pairs(item) {
			if !slices.Contains([]string{"get", "put", "post", "patch", "delete"}, method) {
				continue
			}
			id := textAt(operation, "operationId")
			say(id != "" && !ids[id], method, path, "has no operationId of its own")
			ids[id] = true
			say(textAt(operation, "summary") != "", method, path, "has no summary")
			of := child(operation, "tags")
			say(of != nil && len(of.Content) > 0 && !slices.ContainsFunc(of.Content, func(tag *yaml.Node) bool { return !tags[tag.Value] }), method, path, "has no tag that is declared")
			refused := false
			for status := range pairs(child(operation, "responses")) {
				refused = refused || status[0] == '4' || status == "default"
			}
			say(refused, method, path, "has no answer for a refusal")
		}
	}
	for kind, components := range pairs(child(root, "components")) {
		for name := range pairs(components) {
			say(kind == "securitySchemes" || strings.Contains(whole, "#/components/"+kind+"/"+name), kind, name, "is not used")
		}
	}
	return found
}

// Every schema and every member is there, nullable where the document says so.
func TestModel(t *testing.T) {
	t.Parallel()
	m, err := read([]byte(`
info: {version: "9.9"}
paths:
  /things:
    post: {operationId: createPayment, x-repeat: key, responses: {"200": {content: {application/json: {schema: {$ref: "#/components/schemas/Thing"}}}}}}
components:
  schemas:
    Word: {type: string, enum: [a, b]}
    Thing:
      type: object
      required: [id, word]
      properties:
        id: {type: string}
        word: {$ref: "#/components/schemas/Word"}
        at: {type: [string, "null"], format: date-time}
        share: {type: number}
        inner: {type: [object, "null"], properties: {lines: {type: array, items: {type: object, properties: {n: {type: integer}}}}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	files, err := goFiles(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"WordA = \"a\"", "ID string `json:\"id\"`", "At *Timestamp `json:\"at,omitempty\"`", "Share *Decimal", "Inner *ThingInner", "Lines []ThingInnerLine", "N *int64",
	} {
		if !bytes.Contains(squeeze(files["types_gen.go"]), []byte(want)) {
			t.Errorf("there is no %s in:\n%s", want, files["types_gen.go"])
		}
	}
	typescript, err := typescriptFiles(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`export type Word = "a" | "b" | (string & {});`, "id: string;", "word: Word;", "at?: Timestamp | null;", "share?: Decimal;", "inner?: ThingInner | null;", "lines?: ThingInnerLine[];", "n?: number;",
	} {
		if !bytes.Contains(typescript["src/types.gen.ts"], []byte(want)) {
			t.Errorf("there is no %s in:\n%s", want, typescript["src/types.gen.ts"])
		}
	}
	if op := m.Operations[0]; op.Repeat != "key" || op.Method != "POST" {
		t.Errorf("the operation is %+v", op)
	}
	if _, err := read([]byte("info: {version: a}\npaths: {/x: {post: {operationId: pay}}}\ncomponents: {schemas: {A: {type: string}}}\n")); err == nil {
		t.Error("a call that nobody decided about was taken")
	}
}

func squeeze(b []byte) []byte { return bytes.Join(bytes.Fields(b), []byte(" ")) }

// The open description lets what the service sends grow, and leaves what it reads.
func TestTheOpenDescription(t *testing.T) {
	t.Parallel()
	strict := `openapi: 3.1.0
paths:
  /things:
    post:
      parameters:
        - { name: order, in: query, schema: { type: string, enum: [asc, desc] } }
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/Wish" } } } }
      responses:
        "200": { $ref: "#/components/responses/Ok" }
components:
  headers:
    Api-Version: { schema: { type: string, enum: ["1.1"] } }
  responses:
    Ok: { content: { application/json: { schema: { $ref: "#/components/schemas/Thing" } } } }
  schemas:
    Wish:
      type: object
      properties:
        action: { type: string, enum: [approve, decline] }
    Thing:
      type: object
      additionalProperties: false
      properties:
        word: { type: [string, "null"], enum: [a, null], description: "an enum: of words" }
        again: { $ref: "#/components/schemas/Thing" }
`
	text, asJSON, err := openDescription([]byte(strict))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`enum: [asc, desc]`, `enum: [approve, decline]`, `x-known-values: [a, null], description: "an enum: of words"`, `x-known-values: ["1.1"]`,
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("there is no %s in:\n%s", want, text)
		}
	}
	if bytes.Contains(text, []byte("additionalProperties")) {
		t.Errorf("an answer may not grow:\n%s", text)
	}
	if want := `"word":{"type":["string","null"],"x-known-values":["a",null],"description":"an enum: of words"}`; !bytes.Contains(asJSON, []byte(want)) {
		t.Errorf("there is no %s in:\n%s", want, asJSON)
	}
	if _, _, err := openDescription([]byte("components: {schemas: {A: {additionalProperties: false, type: object}}, responses: {B: {$ref: \"#/components/schemas/A\"}}}\n")); err == nil {
		t.Error("what cannot be edited is passed over")
	}
}
