package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is generated is current: whoever changes the interface changes the SDKs.
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
