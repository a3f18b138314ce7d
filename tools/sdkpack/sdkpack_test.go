package main

import (
	"bytes"
	"io/fs"
	"os"
	"testing"
)

// The packages that the service has are what the sources give: byte for byte, each time.
func TestPackagesAreOfTheSources(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("../../sdk/typescript/dist/src/index.js"); err != nil {
		t.Skip("make sdk-typescript builds the SDK for TypeScript first")
	}
	want, err := pack("../../sdk")
	if err != nil {
		t.Fatal(err)
	}
	again, err := pack("../../sdk")
	if err != nil {
		t.Fatal(err)
	}
	folder := os.DirFS("../../sdk/packages")
	for name, b := range want {
		if !bytes.Equal(b, again[name]) {
			t.Errorf("%s is another each time", name)
		}
		if have, err := fs.ReadFile(folder, name); err != nil || !bytes.Equal(have, b) {
			t.Errorf("sdk/packages/%s is not of the sources: run make sdk-packages (%v)", name, err)
		}
	}
	err = fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && want[name] == nil {
			t.Errorf("sdk/packages/%s belongs to no package", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
