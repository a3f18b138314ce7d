package api

import (
	_ "embed"
	"net/http"
)

// OpenAPI is the strict description of the API, for tests: answers have exactly
// these members and values.
//
//go:embed openapi.yaml
var OpenAPI []byte

// openYAML and OpenJSON are the open description, which tools/sdkgen makes from
// the strict one: what reads it must live with members and values to come.
var (
	//go:embed openapi.open.yaml
	openYAML []byte
	//go:embed openapi.json
	OpenJSON []byte
)

var typeYAML = []string{"application/yaml"}

// getOpenAPI is GET /openapi.yaml.
func (c *exchange) getOpenAPI() error { return c.write(http.StatusOK, typeYAML, openYAML) }

// getOpenAPIJSON is GET /openapi.json.
func (c *exchange) getOpenAPIJSON() error { return c.write(http.StatusOK, typeJSON, OpenJSON) }
