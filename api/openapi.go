package api

import (
	_ "embed"
	"net/http"
)

// OpenAPI is the description of the API, the text that /v1/openapi.yaml
// answers with. Tests hold it to be true.
//
//go:embed openapi.yaml
var OpenAPI []byte

var typeYAML = []string{"application/yaml"}

// getOpenAPI is GET /openapi.yaml.
func (c *exchange) getOpenAPI() error { return c.write(http.StatusOK, typeYAML, OpenAPI) }
