package main

import (
	"bytes"
	"os"
	"path/filepath"
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
}

// Every schema and every member is there, nullable where the document says so.
func TestModel(t *testing.T) {
	t.Parallel()
	m, err := read([]byte(`
info: {version: "9.9"}
paths:
  /things:
    post: {operationId: createPayment, responses: {"200": {content: {application/json: {schema: {$ref: "#/components/schemas/Thing"}}}}}}
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
	if op := m.Operations[0]; op.Repeat != "key" || op.Method != "POST" {
		t.Errorf("the operation is %+v", op)
	}
	if _, err := read([]byte("info: {version: a}\npaths: {/x: {post: {operationId: pay}}}\ncomponents: {schemas: {A: {type: string}}}\n")); err == nil {
		t.Error("a call that nobody decided about was taken")
	}
}

func squeeze(b []byte) []byte { return bytes.Join(bytes.Fields(b), []byte(" ")) }
