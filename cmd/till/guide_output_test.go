package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// consoleSteps splits a console block into commands and what each prints. A
// command goes on in the next line while a quote is open or after a backslash.
func consoleSteps(text string) (steps [][2]string) {
	open := false
	for _, line := range strings.SplitAfter(text, "\n") {
		n := len(steps) - 1
		switch {
		case strings.HasPrefix(line, "$ "):
			steps = append(steps, [2]string{line[2:], ""})
			n++
		case n < 0:
			continue
		case open:
			steps[n][0] += line
		default:
			steps[n][1] += line
			continue
		}
		open = strings.Count(steps[n][0], "'")%2 == 1 || strings.HasSuffix(steps[n][0], "\\\n")
	}
	return steps
}

var spaces = regexp.MustCompile(`[ \t]+`)

// compare compares what was printed with what the page shows.
func (g *guide) compare(b *block, want, file string) {
	got, err := os.ReadFile(filepath.Join(g.out, file))
	if err != nil {
		g.t.Error(err)
		return
	}
	if why := differs(b.lang, g.here(want), string(got)); why != "" {
		g.t.Errorf("%s: %s. It printed:\n%s\nand the page shows:\n%s", b, why, got, want)
	}
}

// differs says in what an output is not what a page shows, or "".
func differs(lang, want, got string) string {
	if lang == "json" {
		var w, g any
		if err := json.Unmarshal([]byte(want), &w); err != nil {
			return err.Error()
		}
		if err := json.Unmarshal([]byte(got), &g); err != nil {
			return err.Error()
		}
		return unlike("", w, g)
	}
	pattern := regexp.QuoteMeta(spaces.ReplaceAllString(strings.TrimSpace(want), " "))
	pattern = strings.ReplaceAll(pattern, "…", "(?s:.*?)")
	ok, err := regexp.MatchString("^"+pattern+"$", spaces.ReplaceAllString(strings.TrimSpace(got), " "))
	if err != nil {
		return err.Error()
	}
	if !ok {
		return "the output is another"
	}
	return ""
}

// unlike compares the shapes of two JSON values: what the page shows must be
// there, and of the same type.
func unlike(at string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return at + " is no object"
		}
		for name, v := range w {
			if name == "…" {
				continue
			}
			if _, ok := g[name]; !ok {
				return fmt.Sprintf("there is no %s/%s", at, name)
			}
			if why := unlike(at+"/"+name, v, g[name]); why != "" {
				return why
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) < len(w) {
			return fmt.Sprintf("%s is no list of at least %d", at, len(w))
		}
		for i := range w {
			if why := unlike(fmt.Sprintf("%s/%d", at, i), w[i], g[i]); why != "" {
				return why
			}
		}
	default:
		if want != "…" && fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) {
			return fmt.Sprintf("%s is a %T and not a %T", at, got, want)
		}
	}
	return ""
}

// variables are the environment variables that a file of connections names.
var variables = regexp.MustCompile(`_env *= *"(\w+)"`)

// load has a server started with a block as its file of connections and routes.
func (g *guide) load(b *block) {
	credentials(g.t, g.root+"/etc/till")
	name := fmt.Sprintf("/etc/till/%d.toml", b.line)
	g.write(name, b.text)
	for _, v := range variables.FindAllStringSubmatch(b.text, -1) {
		g.say("export %s=0000", v[1])
	}
	g.say("CONFIG=%s\nserved", g.here(name))
}

// credentials makes the files that the pages name, with what an operator would
// have sent.
func credentials(t *testing.T, dir string) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, &template, &template, &owner.PublicKey, owner)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"pawapay.pem":   pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}),
		"safaricom.cer": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		"initiator":     []byte("secret\n"),
		"mtn.sub":       []byte("secret\n"),
		"airtel.pin":    []byte("0000\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
