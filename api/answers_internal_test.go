package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"till"
)

var (
	goldenName = regexp.MustCompile(`\{[a-z][a-z0-9_. -]*\}`)
	goldenID   = "019cadd4-faa9-7310-8c51-0e7d2b94f6a3"
)

// pageAnswer is an answer that a page about an error shows.
type pageAnswer struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}

// The pages about errors show answers that the service gave: the shortest one of
// testdata for each code, in docs/answers.json. -update writes it anew.
func TestTheErrorPagesShowRealAnswers(t *testing.T) {
	t.Parallel()
	answers := map[string]pageAnswer{}
	offer := func(code string, status int, body []byte) {
		if was, ok := answers[code]; !ok || len(body) < len(was.Body) {
			answers[code] = pageAnswer{status, body}
		}
	}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		story, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range story.Files {
			head, body, ok := strings.Cut(string(f.Data), "\n\n{\n")
			if !ok || !strings.Contains(head, "application/problem+json") {
				continue
			}
			status, err := strconv.Atoi(head[:3])
			if err != nil {
				t.Fatal(file, err)
			}
			text := []byte(goldenName.ReplaceAllString("{\n"+body, goldenID))
			var p struct {
				Code   string
				Errors []struct{ Code string }
			}
			if err := json.Unmarshal(text, &p); err != nil {
				t.Fatalf("%s: %v in %s", file, err, text)
			}
			offer(p.Code, status, text)
			for _, e := range p.Errors {
				if p.Code == string(till.CodeValidationFailed) {
					offer(p.Code+"/"+e.Code, status, text)
				}
			}
		}
	}
	for code, r := range refusals { // what no test provokes on purpose
		if code != till.CodeClientNotFound {
			if _, ok := answers[string(code)]; !ok {
				offer(string(code), r.status, appendProblem(nil, "http://till.test/docs/errors/", &till.Error{Code: code}, goldenID))
			}
		}
	}
	text, err := json.MarshalIndent(answers, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	const file = "../docs/answers.json"
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, text) {
		t.Errorf("%s is not what testdata says (%v): go test ./api -run RealAnswers -update", file, err)
	}
}
