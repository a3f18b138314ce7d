package main

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// npm makes what npm pack would make of the built SDK for TypeScript.
func (p *packer) npm() error {
	files, err := p.read("typescript", func(name string) bool {
		return strings.HasPrefix(name, "dist/src/") && (strings.HasSuffix(name, ".js") || strings.HasSuffix(name, ".d.ts")) || name == "README.md" || name == "package.json"
	})
	if err != nil {
		return err
	}
	if files["dist/src/index.js"] == nil {
		return fmt.Errorf("sdk/typescript is not built: run npm ci and npm run build there")
	}
	if err := p.checkVersion("package.json", files["package.json"], `"version": "`); err != nil {
		return err
	}
	files["LICENSE"] = p.license
	p.out["till-sdk-"+p.version+".tgz"], err = tarball(prefixed("package", files))
	return err
}

// python makes a wheel and the archive of its sources.
func (p *packer) python() error {
	files, err := p.read("python", func(name string) bool {
		return strings.HasPrefix(name, "till/") && slices.Contains([]string{".py", ".sql", ".typed"}, path.Ext(name)) || name == "README.md" || name == "pyproject.toml"
	})
	if err != nil {
		return err
	}
	if err := p.checkVersion("pyproject.toml", files["pyproject.toml"], `version = "`); err != nil {
		return err
	}
	name := "till_sdk-" + p.version
	metadata := fmt.Appendf(nil, "Metadata-Version: 2.4\nName: till-sdk\nVersion: %s\nSummary: Collect mobile money with Till: each customer is asked once, each order is shipped once\n"+
		"Project-URL: Homepage, %s\nProject-URL: Repository, %[2]s\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\nClassifier: Typing :: Typed\nClassifier: Framework :: Django\nClassifier: Framework :: Flask\n"+
		"Requires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n%s", p.version, home, files["README.md"])
	sources := maps.Clone(files)
	sources["LICENSE"], sources["PKG-INFO"] = p.license, metadata
	if p.out[name+".tar.gz"], err = tarball(prefixed(name, sources)); err != nil {
		return err
	}
	info := name + ".dist-info/"
	wheel := map[string][]byte{
		info + "METADATA":         metadata,
		info + "WHEEL":            []byte("Wheel-Version: 1.0\nGenerator: till\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
		info + "licenses/LICENSE": p.license,
	}
	for n, b := range files {
		if strings.HasPrefix(n, "till/") {
			wheel[n] = b
		}
	}
	var record bytes.Buffer
	for _, n := range slices.Sorted(maps.Keys(wheel)) {
		sum := sha256.Sum256(wheel[n])
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", n, base64.RawURLEncoding.EncodeToString(sum[:]), len(wheel[n]))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	wheel[info+"RECORD"] = record.Bytes()
	p.out[name+"-py3-none-any.whl"], err = zipFile(wheel, info+"RECORD")
	return err
}

// php makes a Composer repository of one package. The service puts its own address into
// packages.json, because Composer takes no relative one.
func (p *packer) php() error {
	files, err := p.read("php", func(name string) bool {
		return strings.HasPrefix(name, "src/") || name == "README.md" || name == "composer.json"
	})
	if err != nil {
		return err
	}
	files["LICENSE"] = p.license
	name := "till-sdk-" + p.version + ".zip"
	archive, err := zipFile(prefixed("till-sdk-"+p.version, files))
	if err != nil {
		return err
	}
	p.out["php/"+name] = archive
	var described map[string]any
	if err := json.Unmarshal(files["composer.json"], &described); err != nil {
		return err
	}
	sum := sha1.Sum(archive) // Composer knows no other
	described["version"] = p.version
	described["dist"] = map[string]any{"type": "zip", "url": "{base}/php/" + name, "shasum": hex.EncodeToString(sum[:])}
	index, err := json.MarshalIndent(map[string]any{"packages": map[string]any{"till/till-sdk": map[string]any{p.version: described}}}, "", "  ")
	p.out["php/packages.json"] = append(index, '\n')
	return err
}

// goModule is the path of the SDK for Go.
const goModule = "github.com/till-project/till/sdk/go"

// golang makes what a proxy for Go modules serves.
func (p *packer) golang() error {
	files, err := p.read("go", func(name string) bool {
		return !strings.HasPrefix(name, "driver/") && (strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") || name == "go.mod" || strings.HasSuffix(name, ".sql"))
	})
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(files["go.mod"], []byte("module "+goModule+"\n")) {
		return fmt.Errorf("sdk/go/go.mod is not of %s", goModule)
	}
	version := "v" + p.version
	at := "go/" + goModule + "/@v/"
	info := fmt.Appendf(nil, "{\"Version\":%q,\"Time\":%q}\n", version, made.Format("2006-01-02T15:04:05Z"))
	p.out[at+"list"] = []byte(version + "\n")
	p.out[at+version+".info"] = info
	p.out["go/"+goModule+"/@latest"] = info
	p.out[at+version+".mod"] = files["go.mod"]
	files["LICENSE"] = p.license
	p.out[at+version+".zip"], err = zipFile(prefixed(goModule+"@"+version, files))
	return err
}

// checkVersion compares the version that a file names with the one of all SDKs.
func (p *packer) checkVersion(name string, text []byte, before string) error {
	if !bytes.Contains(text, []byte(before+p.version+`"`)) {
		return fmt.Errorf("%s is not of version %s", name, p.version)
	}
	return nil
}
