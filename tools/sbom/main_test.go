package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

func TestBOM(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Path: "till", Version: "v1.2.3"},
		Deps:     []*debug.Module{{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:abc="}},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "-ldflags", Value: "x"}}}
	at := time.Unix(1_800_000_000, 0)
	d, err := bom(info, [32]byte{1, 2, 3}, "example.com/a v1.0.0 h1:abc=\nexample.com/a v1.0.0/go.mod h1:def=\n", at)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"specVersion":"1.6"`, `"serialNumber":"urn:uuid:01020300-0000-8000-8000-000000000000"`, `"timestamp":"2027-01-15T08:00:00Z"`,
		`"purl":"pkg:golang/example.com/a@v1.0.0"`, `"purl":"pkg:golang/std@1.26.0"`, `"dependsOn":["std","pkg:golang/example.com/a@v1.0.0"]`, `"version":"v1.2.3"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
	if _, err := bom(info, [32]byte{}, "example.com/a v1.0.0 h1:other=\n", at); err == nil {
		t.Error("a module with another sum than go.sum's is taken")
	}
}
