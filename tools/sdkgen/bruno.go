package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// bruno returns the files of a collection of Bruno, by their path in its folder.
func bruno(tags []string, requests []request) map[string]string {
	out := map[string]string{
		"bruno.json":           "{\n  \"version\": \"1\",\n  \"name\": \"Till\",\n  \"type\": \"collection\"\n}\n",
		"collection.bru":       "headers {\n  X-Api-Key: {{key}}\n}\n\ndocs {\n  Made from api/openapi.yaml. Set key to a test key. The idempotency key is drawn once for each value of order: sent again, a call is a replay. For another payment, change order.\n}\n",
		"environments/dev.bru": "vars {\n  base_url: http://127.0.0.1:8080/v1\n  order: ORDER-1\n}\nvars:secret [\n  key\n]\n",
	}
	for i, tag := range tags {
		folder := strings.ReplaceAll(strings.ToLower(tag), " ", "-")
		out[filepath.Join(folder, "folder.bru")] = fmt.Sprintf("meta {\n  name: %s\n  seq: %d\n}\n", tag, i+1)
		n := 0
		for _, r := range requests {
			if r.tag == tag {
				n++
				out[filepath.Join(folder, r.id+".bru")] = brunoRequest(r, n)
			}
		}
	}
	return out
}

func brunoRequest(r request, seq int) string {
	var b strings.Builder
	body := "none"
	if r.body != "" {
		body = "json"
	}
	fmt.Fprintf(&b, "meta {\n  name: %s\n  type: http\n  seq: %d\n}\n\n%s {\n  url: %s\n  body: %s\n  auth: none\n}\n", r.name, seq, strings.ToLower(r.method), r.url(), body)
	if len(r.query) > 0 {
		b.WriteString("\nparams:query {\n")
		for _, q := range r.query {
			name, value, _ := strings.Cut(q, "=")
			fmt.Fprintf(&b, "  ~%s: %s\n", name, value)
		}
		b.WriteString("}\n")
	}
	if r.body != "" {
		fmt.Fprintf(&b, "\nbody:json {\n%s\n}\n", indent(r.body))
	}
	if r.repeat == "key" {
		fmt.Fprintf(&b, "\nscript:pre-request {\n%s\n}\n", indent(`// One key per order, drawn before the first send: a second send is a replay.
const name = "`+r.keyName()+`" + bru.getEnvVar("order");
if (!bru.getEnvVar(name)) bru.setEnvVar(name, require("uuid").v4());
bru.setVar("idempotency_key", bru.getEnvVar(name));`))
	}
	if name := r.kept(); name != "" {
		fmt.Fprintf(&b, "\nscript:post-response {\n  if (res.status < 300) bru.setVar(\"%s\", %s);\n}\n", name, r.idOf("res.body"))
	}
	fmt.Fprintf(&b, "\ntests {\n  test(\"it is answered as documented\", function () {\n    expect(res.status).to.be.oneOf(%s);\n  });\n}\n", r.expected())
	return b.String()
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
