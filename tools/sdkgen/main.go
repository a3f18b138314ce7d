// Sdkgen writes the open description of the API (api/openapi.open.yaml and
// api/openapi.json), the collections of requests for Postman and Bruno
// (api/postman.json, api/bruno), and what the SDKs have in common with api/openapi.yaml: the
// types, the table of operations, the decimals of currencies, and the vectors that are
// made rather than written (webhook.json, return.json, decode.json). The duties of a client
// are written by hand in each SDK; no generator knows them.
//
// Run it with go run ./sdkgen in tools, then read the difference: a member that
// became nullable changes what compiles in every shop.
package main

import (
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// languages are the generators, by the folder of their SDK. A language is one
// function from the model to files.
var languages = map[string]func(*Model) (map[string][]byte, error){
	"go": goFiles, "typescript": typescriptFiles, "python": pythonFiles, "php": phpFiles,
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("sdkgen: ")
	root := flag.String("root", "..", "the `folder` of the repository")
	flag.Parse()
	files, err := generate(*root)
	if err != nil {
		log.Fatal(err)
	}
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(*root, path)), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*root, path), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// generate returns every generated file by its path in the repository.
func generate(root string) (map[string][]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, "api", "openapi.yaml"))
	if err != nil {
		return nil, err
	}
	model, err := read(text)
	if err != nil {
		return nil, fmt.Errorf("api/openapi.yaml: %w", err)
	}
	version, err := os.ReadFile(filepath.Join(root, "sdk", "VERSION"))
	if err != nil {
		return nil, err
	}
	open, openJSON, err := openDescription(text)
	if err != nil {
		return nil, fmt.Errorf("api/openapi.yaml: %w", err)
	}
	model.Version = strings.TrimSpace(string(version))
	model.Tables = map[string]string{}
	for _, name := range []string{"sqlite", "postgres", "mysql"} {
		text, err := os.ReadFile(filepath.Join(root, "sdk", "schema", name+".sql"))
		if err != nil {
			return nil, err
		}
		model.Tables[name] = string(text)
	}
	out := map[string][]byte{filepath.Join("api", "openapi.open.yaml"): open, filepath.Join("api", "openapi.json"): openJSON}
	for folder, write := range languages {
		files, err := write(model)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		for name, text := range files {
			out[filepath.Join("sdk", folder, name)] = text
		}
	}
	requests, err := collections(open)
	if err != nil {
		return nil, fmt.Errorf("api/openapi.yaml: %w", err)
	}
	maps.Copy(out, requests)
	vectors := filepath.Join("sdk", "conformance", "vectors")
	if out[filepath.Join(vectors, "decode.json")], err = decodeVectors(root); err != nil {
		return nil, err
	}
	if out[filepath.Join(vectors, "webhook.json")], err = webhookVectors(); err != nil {
		return nil, err
	}
	out[filepath.Join(vectors, "return.json")], err = returnVectors()
	return out, err
}
