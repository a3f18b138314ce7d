package main

import (
	"bytes"
	"encoding/json"
	"strings"
)

// The parts of a collection of Postman, version 2.1.
type (
	postmanCollection struct {
		Info struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Schema      string `json:"schema"`
		} `json:"info"`
		Auth     postmanAuth       `json:"auth"`
		Variable []postmanVariable `json:"variable"`
		Item     []postmanFolder   `json:"item"`
	}
	postmanAuth struct {
		Type   string            `json:"type"`
		APIKey []postmanVariable `json:"apikey"`
	}
	postmanVariable struct {
		Key      string `json:"key"`
		Value    string `json:"value"`
		Disabled bool   `json:"disabled,omitempty"`
	}
	postmanFolder struct {
		Name string        `json:"name"`
		Item []postmanItem `json:"item"`
	}
	postmanItem struct {
		Name    string         `json:"name"`
		Event   []postmanEvent `json:"event"`
		Request struct {
			Method string            `json:"method"`
			Header []postmanVariable `json:"header"`
			URL    postmanURL        `json:"url"`
			Body   *postmanBody      `json:"body,omitempty"`
		} `json:"request"`
	}
	postmanURL struct {
		Raw   string            `json:"raw"`
		Host  []string          `json:"host"`
		Path  []string          `json:"path"`
		Query []postmanVariable `json:"query,omitempty"`
	}
	postmanBody struct {
		Mode string `json:"mode"`
		Raw  string `json:"raw"`
	}
	postmanEvent struct {
		Listen string `json:"listen"`
		Script struct {
			Type string   `json:"type"`
			Exec []string `json:"exec"`
		} `json:"script"`
	}
)

func script(listen, code string) postmanEvent {
	e := postmanEvent{Listen: listen}
	e.Script.Type, e.Script.Exec = "text/javascript", strings.Split(code, "\n")
	return e
}

func postman(tags []string, requests []request) ([]byte, error) {
	var c postmanCollection
	c.Info.Name, c.Info.Schema = "Till", "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
	c.Info.Description = "Made from api/openapi.yaml. Set key to a test key. The idempotency key is drawn once for each value of order: sent again, a call is a replay. For another payment, change order."
	c.Auth = postmanAuth{"apikey", []postmanVariable{{Key: "key", Value: "X-Api-Key"}, {Key: "value", Value: "{{key}}"}, {Key: "in", Value: "header"}}}
	c.Variable = []postmanVariable{{Key: "base_url", Value: "http://127.0.0.1:8080/v1"}, {Key: "key"}, {Key: "order", Value: "ORDER-1"}}
	for _, tag := range tags {
		f := postmanFolder{Name: tag}
		for _, r := range requests {
			if r.tag == tag {
				f.Item = append(f.Item, postmanRequest(r))
			}
		}
		c.Item = append(c.Item, f)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(c)
	return b.Bytes(), err
}

func postmanRequest(r request) postmanItem {
	item := postmanItem{Name: r.name, Event: []postmanEvent{}}
	if r.repeat == "key" {
		item.Event = append(item.Event, script("prerequest", `// One key per order, drawn before the first send: a second send is a replay.
const name = "`+r.keyName()+`" + pm.variables.get("order");
if (!pm.collectionVariables.get(name)) pm.collectionVariables.set(name, pm.variables.replaceIn("{{$guid}}"));
pm.variables.set("idempotency_key", pm.collectionVariables.get(name));`))
	}
	test := `pm.test("it is answered as documented", () => pm.expect(pm.response.code, pm.response.text().slice(0, 300)).to.be.oneOf(` + r.expected() + `));`
	if name := r.kept(); name != "" {
		test += "\nif (pm.response.code < 300) pm.collectionVariables.set(\"" + name + "\", " + r.idOf("pm.response.json()") + ");"
	}
	item.Event = append(item.Event, script("test", test))
	item.Request.Method, item.Request.Header = r.method, []postmanVariable{}
	item.Request.URL = postmanURL{Raw: r.url(), Host: []string{"{{base_url}}"}, Path: strings.Split(strings.Trim(strings.TrimPrefix(r.url(), "{{base_url}}"), "/"), "/")}
	for _, q := range r.query {
		name, value, _ := strings.Cut(q, "=")
		item.Request.URL.Query = append(item.Request.URL.Query, postmanVariable{Key: name, Value: value, Disabled: true})
	}
	if r.body != "" {
		item.Request.Header = append(item.Request.Header, postmanVariable{Key: "Content-Type", Value: "application/json"})
		item.Request.Body = &postmanBody{"raw", r.body}
	}
	return item
}
