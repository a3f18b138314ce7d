// Command sbom writes what a Go program consists of, as CycloneDX 1.6, from the build
// information in the program itself and the sums in go.sum.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

func main() {
	sums := flag.String("sum", "", "the go.sum of the program's module")
	flag.Parse()
	if err := run(*sums, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(sumFile, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(sumFile)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	b, err := bom(info, sha256.Sum256(binary), string(text), time.Unix(seconds, 0))
	if err != nil {
		return err
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(b)
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type component struct {
	Type       string     `json:"type"`
	BOMRef     string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

type document struct {
	Schema       string `json:"$schema"`
	BOMFormat    string `json:"bomFormat"`
	SpecVersion  string `json:"specVersion"`
	SerialNumber string `json:"serialNumber"`
	Version      int    `json:"version"`
	Metadata     struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	} `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

// bom describes a program. A linked module whose sum is not in go.sum is an error: it
// would have come from somewhere else than the build says.
func bom(info *debug.BuildInfo, digest [32]byte, sums string, at time.Time) (*document, error) {
	d := &document{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1}
	// The number comes from the program, so that two builds give the same document.
	id := digest
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	d.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	d.Metadata.Timestamp = at.UTC().Format(time.RFC3339)
	program := component{Type: "application", BOMRef: "program", Name: "till", Version: info.Main.Version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(digest[:])}}}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "vcs.revision", "vcs.time":
			program.Properties = append(program.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	d.Metadata.Component = program
	std := component{Type: "library", BOMRef: "std", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	d.Components, d.Dependencies = []component{std}, []dependency{{Ref: "program", DependsOn: []string{"std"}}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Sum == "" || !strings.Contains(sums, m.Path+" "+m.Version+" "+m.Sum+"\n") {
			return nil, fmt.Errorf("go.sum does not have %s %s %s", m.Path, m.Version, m.Sum)
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		d.Components = append(d.Components, component{Type: "library", BOMRef: purl, Name: m.Path, Version: m.Version, PURL: purl,
			Properties: []property{{"go:sum", m.Sum}}})
		d.Dependencies[0].DependsOn = append(d.Dependencies[0].DependsOn, purl)
	}
	return d, nil
}
