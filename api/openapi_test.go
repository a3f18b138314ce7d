package api_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/google/go-cmp/cmp"

	"till"
	"till/api"
)

// description is openapi.yaml, read once.
var description = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromData(api.OpenAPI)
})

func init() {
	// The validator reads what it has no decoder for as JSON.
	for _, lines := range []string{"application/jsonl", "application/x-ndjson", "text/csv"} {
		openapi3filter.RegisterBodyDecoder(lines, func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
			b, err := io.ReadAll(body)
			return string(b), err
		})
	}
}

func describe(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := description()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestTheDescriptionIsValid(t *testing.T) {
	t.Parallel()
	if err := describe(t).Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

// What is served is the open description: valid, the same calls, and nothing of what
// the service sends is closed.
func TestTheOpenDescriptionIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	strict := describe(t)
	for _, name := range []string{"openapi.yaml", "openapi.json"} {
		doc, err := openapi3.NewLoader().LoadFromData(w.do(http.MethodGet, "/v1/"+name, "", "").Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Validate(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if doc.Paths.Len() != strict.Paths.Len() || len(doc.Components.Schemas) != len(strict.Components.Schemas) {
			t.Errorf("%s has other paths or schemas", name)
		}
		payment := doc.Components.Schemas["Payment"].Value
		if has := payment.AdditionalProperties.Has; has != nil && !*has {
			t.Errorf("%s: a payment may not grow", name)
		}
		status := doc.Components.Schemas["PaymentStatus"].Value
		if known, _ := status.Extensions["x-known-values"].([]any); len(status.Enum) > 0 || len(known) != len(till.Statuses) {
			t.Errorf("%s: the list of statuses is closed: %v, known %v", name, status.Enum, known)
		}
		if action := doc.Components.Schemas["DecideSandboxPrompt"].Value.Properties["action"].Value; len(action.Enum) != 4 {
			t.Errorf("%s: what the service reads is not what it was: %v", name, action.Enum)
		}
	}
}

func TestTheDescriptionListsTheRoutes(t *testing.T) {
	t.Parallel()
	var described, routes []string
	for path, item := range describe(t).Paths.Map() {
		for method, op := range item.Operations() {
			name := method + " " + path + " " + strings.Join(queryNames(item, op), ",")
			if op.Security != nil && len(*op.Security) == 0 {
				name += " open"
			}
			described = append(described, name)
		}
	}
	for _, r := range api.Routes {
		name := r.Method + " " + r.Path + " " + strings.Join(slices.Sorted(slices.Values(r.Query)), ",")
		if r.Open {
			name += " open"
		}
		routes = append(routes, name)
	}
	slices.Sort(described)
	slices.Sort(routes)
	if diff := cmp.Diff(routes, described); diff != "" {
		t.Errorf("the routes and openapi.yaml (-routes +openapi):\n%s", diff)
	}
}

func queryNames(item *openapi3.PathItem, op *openapi3.Operation) (out []string) {
	for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
		if p.Value.In == "query" {
			out = append(out, p.Value.Name)
		}
	}
	slices.Sort(out)
	return out
}

// The lists of reasons and of kinds of events are those of the service, so the SDKs' constants are, too.
func TestTheDescriptionListsReasonsAndKinds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"FailureReason", "EventKind"} {
		var described []string
		for _, v := range describe(t).Components.Schemas[name].Value.Enum {
			if v != nil {
				described = append(described, v.(string))
			}
		}
		slices.Sort(described)
		if diff := cmp.Diff(constants(t, name), described); diff != "" {
			t.Errorf("%s in package till and in openapi.yaml (-till +openapi):\n%s", name, diff)
		}
	}
}

// constants returns the values of the constants of a type of package till.
func constants(t *testing.T, of string) (out []string) {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := v.Type.(*ast.Ident); ok && kind.Name == of && len(v.Values) == 1 {
				if text, ok := v.Values[0].(*ast.BasicLit); ok {
					value, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, value)
				}
			}
			return true
		})
	}
	slices.Sort(out)
	return out
}

func TestTheDescriptionListsTheCodes(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	for _, v := range describe(t).Components.Schemas["ErrorCode"].Value.Enum {
		got[v.(string)] = true
	}
	for _, code := range api.Codes() {
		if !got[string(code)] && code != till.CodeClientNotFound { // a command's, never an answer's
			t.Errorf("openapi.yaml does not list %s", code)
		}
		delete(got, string(code))
	}
	for code := range got {
		t.Errorf("openapi.yaml lists %s, which no answer has", code)
	}
}

// checkAnswer checks what holds for every exchange: the common headers, the
// form that openapi.yaml describes, and that a refusal repeats nothing.
func checkAnswer(t testing.TB, r *http.Request, sent []byte, a *httptest.ResponseRecorder) {
	t.Helper()
	id := a.Header().Get("X-Request-Id")
	if _, err := till.ParseID(id); err != nil {
		t.Errorf("X-Request-Id is %q", id)
	}
	if v := a.Header().Get("Api-Version"); v != "1.1" {
		t.Errorf("Api-Version is %q", v)
	}
	if v := a.Header().Get("Cache-Control"); v != "no-store" {
		t.Errorf("Cache-Control is %q", v)
	}
	if v := a.Header().Get("X-Content-Type-Options"); v != "nosniff" {
		t.Errorf("X-Content-Type-Options is %q", v)
	}
	body := a.Body.Bytes()
	if kind := a.Header().Get("Content-Type"); strings.HasSuffix(kind, "json") && kind != "application/x-ndjson" {
		var compact bytes.Buffer
		if err := json.Compact(&compact, body); err != nil || !bytes.Equal(compact.Bytes(), body) {
			t.Errorf("the answer is not compact JSON: %v", err)
		}
	}
	if a.Code >= 400 {
		checkProblem(t, r, sent, a.Code, id, body)
	}
	route := routeOf(t, r)
	if route == nil {
		return
	}
	input := &openapi3filter.RequestValidationInput{
		Request: r, Route: route, PathParams: pathParams(route.Path, r.URL.Path),
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if a.Code < 400 {
		r.Body = io.NopCloser(bytes.NewReader(sent))
		if err := openapi3filter.ValidateRequest(t.Context(), input); err != nil {
			t.Errorf("an accepted request is not as openapi.yaml says: %v", err)
		}
	}
	output := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: a.Code, Header: a.Header(), Options: input.Options}
	output.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(t.Context(), output); err != nil {
		t.Errorf("the answer is not as openapi.yaml says: %v", err)
	}
}

// routeOf finds the operation of a request, nil if there is none.
func routeOf(t testing.TB, r *http.Request) *routers.Route {
	doc := describe(t)
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for path, item := range doc.Paths.Map() {
		if pathParams(path, r.URL.Path) != nil {
			if op := item.GetOperation(method); op != nil {
				return &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: op}
			}
		}
	}
	return nil
}

// pathParams returns the parameters of a path, nil if it does not match.
func pathParams(pattern, path string) map[string]string {
	want, got := strings.Split("/v1"+pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil
	}
	params := map[string]string{}
	for i, w := range want {
		if name, ok := strings.CutPrefix(w, "{"); ok {
			params[strings.TrimSuffix(name, "}")] = got[i]
		} else if w != got[i] {
			return nil
		}
	}
	return params
}

// problem is the body of a refusal.
type problem struct {
	Type, Title, Detail, Code string
	Status                    int
	RequestID                 string `json:"request_id"`
	PaymentID                 string `json:"payment_id"`
	Errors                    []struct{ Pointer, Code, Detail string }
}

var (
	digitRun  = regexp.MustCompile(`[0-9]{9,}`)
	longWord  = regexp.MustCompile(`[:,\[]\s*"([^"\\]{6,})"\s*[,}\]]`) // a value, not a name
	secretish = regexp.MustCompile(`till_(live|test)_`)
)

// checkProblem checks a refusal: its form, and that nothing of the request is
// in it. The only phone it may show is the example of a country.
func checkProblem(t testing.TB, r *http.Request, sent []byte, status int, id string, body []byte) {
	t.Helper()
	if len(body) == 0 {
		if r.Method != http.MethodHead {
			t.Errorf("%d without a body", status)
		}
		return
	}
	var p problem
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("problem: %v", err)
	}
	if p.Status != status || p.RequestID != id || p.Type != errorPages+p.Code || p.Title != http.StatusText(status) || p.Detail == "" || p.Code == "" {
		t.Errorf("problem %s for %d, request %s", body, status, id)
	}
	if secretish.Match(body) {
		t.Errorf("a key in a problem: %s", body)
	}
	uri := r.URL.RequestURI()
	if p.PaymentID == "" {
		for _, run := range digitRun.FindAllString(string(sent)+uri, -1) {
			if bytes.Contains(body, []byte(run)) && !isExample(run) {
				t.Errorf("%s of the request is in the problem: %s", run, body)
			}
		}
	}
	for _, m := range longWord.FindAllStringSubmatch(string(sent), -1) {
		for _, e := range p.Errors {
			if strings.Contains(e.Detail, m[1]) {
				t.Errorf("%q of the request is in the problem: %s", m[1], body)
			}
		}
	}
}

func isExample(phone string) bool {
	for _, m := range till.Methods() {
		for _, code := range m.Countries() {
			if c, _ := till.CountryOf(code); c.Example == phone {
				return true
			}
		}
	}
	return false
}
