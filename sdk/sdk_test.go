package sdk

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func get(t *testing.T, method, path string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	Handler("https://pay.example.com/sdk").ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Result()
}

// What is served is what SHA256SUMS says, and everything is listed there.
func TestPackagesHaveTheirSums(t *testing.T) {
	t.Parallel()
	sums, err := fs.ReadFile(Files(), "SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"SHA256SUMS": true, "php/packages.json": true}
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = true
		answer := get(t, http.MethodGet, Prefix+"/"+name)
		b, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", name, answer.Status, err)
		}
		if have := sha256.Sum256(b); hex.EncodeToString(have[:]) != want {
			t.Errorf("%s has another sum", name)
		}
	}
	err = fs.WalkDir(Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !listed[name] {
			t.Errorf("SHA256SUMS leaves out %s", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Each package has its license and says where it is from, and no file of a test, a cache or
// a machine.
func TestPackagesAreWhole(t *testing.T) {
	t.Parallel()
	v := Version()
	for name, needed := range map[string]string{
		"till_sdk-" + v + "-py3-none-any.whl":                      "licenses/LICENSE till/__init__.py till/py.typed till/schema/sqlite.sql METADATA RECORD",
		"php/till-sdk-" + v + ".zip":                               "LICENSE composer.json src/autoload.php README.md",
		"go/github.com/till-project/till/sdk/go/@v/v" + v + ".zip": "LICENSE go.mod client.go sqlstore/store.go filestore/store.go",
	} {
		b, err := fs.ReadFile(Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(name, err)
		}
		var all []string
		for _, f := range z.File {
			all = append(all, f.Name)
			if strings.Contains(f.Name, "_test") || strings.Contains(f.Name, "__pycache__") || strings.HasPrefix(f.Name, "/") || strings.Contains(f.Name, "..") {
				t.Errorf("%s has %s", name, f.Name)
			}
		}
		for n := range strings.FieldsSeq(needed) {
			if !strings.Contains("\n/"+strings.Join(all, "\n/")+"\n", "/"+n+"\n") {
				t.Errorf("%s lacks %s", name, n)
			}
		}
	}
}

// Composer gets an address of this service.
func TestComposerGetsAnAddress(t *testing.T) {
	t.Parallel()
	var index struct {
		Packages map[string]map[string]struct {
			Dist struct{ URL string }
		}
	}
	if err := json.NewDecoder(get(t, http.MethodGet, Prefix+"/php/packages.json").Body).Decode(&index); err != nil {
		t.Fatal(err)
	}
	url := index.Packages["till/till-sdk"][Version()].Dist.URL
	path, ok := strings.CutPrefix(url, "https://pay.example.com")
	if !ok || get(t, http.MethodGet, path).StatusCode != http.StatusOK {
		t.Errorf("the address is %q", url)
	}
}

func TestAnswersOfThePackages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/sdk", 200, "pip install https://pay.example.com/sdk/till_sdk-"},
		{"GET", "/sdk/", 200, "npm install https://pay.example.com/sdk/till-sdk-"},
		{"HEAD", "/sdk/SHA256SUMS", 200, ""},
		{"GET", "/sdk/php", 404, "https://pay.example.com/sdk/ lists them"},
		{"GET", "/sdk/../VERSION", 404, "there is no such package"},
		{"GET", "/sdk/till-sdk-9.9.9.tgz", 404, "there is no such package"},
		{"POST", "/sdk/", 405, "only GET"},
	} {
		answer := get(t, c.method, c.path)
		b, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != c.status || !strings.Contains(string(b), c.says) || c.method == "HEAD" && answer.ContentLength == 0 {
			t.Errorf("%s %s: %s\n%s", c.method, c.path, answer.Status, b)
		}
	}
}
