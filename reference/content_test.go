package reference_test

import (
	"bytes"
	"encoding/json"
	"html"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"till"
	"till/api"
	"till/docs"
)

// Every code has its page, with all that a page about an error says.
func TestEveryErrorHasItsPage(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, code := range api.Codes() {
		if code == till.CodeClientNotFound {
			continue // of the command line
		}
		text := all["/docs/errors/"+string(code)]
		for _, want := range []string{`id="meaning"`, `id="outcome"`, `id="do"`, `id="answer"`, html.EscapeString(`"code": "` + string(code) + `"`), "https://pay.example.com/till/docs/errors/" + string(code)} {
			if !strings.Contains(text, want) {
				t.Errorf("the page about %s has no %s", code, want)
			}
		}
	}
	unclear := 0
	for path, text := range all {
		if strings.HasPrefix(path, "/docs/errors/") && strings.Contains(text, `<p><span class="mark unclear">`) {
			unclear++
		}
	}
	if unclear != 2 {
		t.Errorf("%d errors are unclear; internal_error and service_unavailable are", unclear)
	}
}

var operationID = regexp.MustCompile(`"operationId":"(\w+)"`)

// Every call is in the reference, in French too, and in five languages of programs.
func TestEveryCallIsThere(t *testing.T) {
	t.Parallel()
	en, fr := "", ""
	for path, text := range pages(t) {
		if strings.HasPrefix(path, "/docs/reference/") {
			en += text
		} else if strings.HasPrefix(path, "/docs/fr/reference/") {
			fr += text
		}
	}
	title := func(all, id string) string {
		return regexp.MustCompile(`<h2 id="` + id + `">(.*)</h2>`).FindString(all)
	}
	names := pages(t)["/docs/names"]
	for _, name := range []string{"createPayment", "/payments/{payment_id}", "idempotency_key", "payment.late_success", "needs_attention", "payouts:write", "line_item_mismatch", "rate_limited", "insufficient_funds", "webhook_endpoint.disabled", "collection_reversal"} {
		if !strings.Contains(names, "<code>"+name+"</code>") {
			t.Errorf("%s is not in the list of names", name)
		}
	}
	name := regexp.MustCompile(`<li><code>([^<]*)</code>`)
	if en, fr := name.FindAllString(names, -1), name.FindAllString(pages(t)["/docs/fr/names"], -1); !slices.Equal(en, fr) {
		t.Errorf("the list has %d names, and %d in French", len(en), len(fr))
	}
	ids := operationID.FindAllSubmatch(api.OpenJSON, -1)
	if len(ids) < 35 {
		t.Fatalf("only %d calls", len(ids))
	}
	for _, m := range ids {
		id := string(m[1])
		if title(en, id) == "" || title(fr, id) == "" || title(en, id) == title(fr, id) {
			t.Errorf("%s is not there in both languages", id)
		}
		part := en[strings.Index(en, `<h2 id="`+id+`">`):]
		if end := strings.Index(part, "</section>\n\n"); end > 0 {
			part = part[:end]
		}
		want := []string{"curl", "Go", "TypeScript", "PHP", "Python"}
		switch {
		case strings.HasPrefix(id, "receive"):
			continue // others make these calls
		case strings.HasPrefix(id, "getOpenapi"):
			want = want[:1]
		case !strings.Contains(part, "<dt>Scope</dt>") && id != "listPaymentMethods" && id != "predictPaymentMethod" && id != "getMe" && id != "listSandboxStories":
			t.Errorf("%s tells no scope", id)
		}
		for _, language := range want {
			if !strings.Contains(part, `data-lang="`+language+`"`) {
				t.Errorf("%s is not shown in %s", id, language)
			}
		}
		if !strings.Contains(part, "<dt>Repeat</dt>") {
			t.Errorf("%s does not say whether it may be repeated", id)
		}
	}
}

var fence = regexp.MustCompile("(?s)```\\w+\n(.*?)```")

// Every block of code on a page is one that a test runs: a block of a guide
// (TestGuides), a part of a program (TestEveryCallOfThePagesRuns), an example of the
// OpenAPI document (TestTheDescriptionIsValid), or an answer of the service
// (TestTheErrorPagesShowRealAnswers).
func TestEveryBlockOfCodeIsRun(t *testing.T) {
	t.Parallel()
	known := map[string]string{}
	know := func(text, from string) { known[strings.Join(strings.Fields(text), " ")] = from }
	programs := ""
	read := func(path string) string {
		text, err := docs.Files.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	guides, err := fs.Glob(docs.Files, "pages/en/*.md")
	if err != nil || len(guides) == 0 {
		t.Fatal(guides, err)
	}
	sdks, err := fs.Glob(docs.Files, "guide/sdk-*.md")
	if err != nil || len(sdks) != 4 {
		t.Fatal(sdks, err)
	}
	for _, g := range append(guides, sdks...) {
		for _, m := range fence.FindAllStringSubmatch(read(g), -1) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(m[1]), "{{"); ok {
				know(read("_examples/"+strings.TrimSuffix(name, "}}")), g)
			} else {
				know(m[1], g)
			}
		}
	}
	for _, p := range []string{"calls.sh", "calls.go.txt", "calls.mjs", "calls.php", "calls.py"} {
		programs += " " + strings.Join(strings.Fields(read("_examples/"+p)), " ")
	}
	var jsons []string
	for _, text := range []string{read("answers.json"), string(api.OpenJSON)} {
		jsons = append(jsons, strings.ReplaceAll(text, "http://till.test/", "https://pay.example.com/till/"))
	}
	blocks := 0
	for path, page := range pages(t) {
		for _, m := range codeBlock.FindAllStringSubmatch(page, -1) {
			blocks++
			text := html.UnescapeString(m[1])
			if strings.Contains(path, "/sdk/") {
				text = strings.ReplaceAll(text, strings.TrimSuffix(base, "/v1"), "http://127.0.0.1:8080")
			}
			plain := strings.Join(strings.Fields(text), " ")
			if known[plain] == "" && !strings.Contains(programs, plain) && !isValueOf(jsons, text) {
				t.Errorf("%s shows what no test runs:\n%s", path, text)
			}
		}
	}
	if blocks < 300 {
		t.Errorf("only %d blocks were found", blocks)
	}
}

// isValueOf reports whether a text is a JSON value inside one of the documents.
func isValueOf(documents []string, text string) bool {
	if !json.Valid([]byte(text)) {
		return false
	}
	return slices.ContainsFunc(documents, func(d string) bool {
		return strings.Contains(compact(d), compact(text))
	})
}

var compacted = map[string]string{}

func compact(text string) string {
	if len(text) > 10_000 && compacted[text[:200]] != "" {
		return compacted[text[:200]]
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	if len(text) > 10_000 {
		compacted[text[:200]] = b.String()
	}
	return b.String()
}
