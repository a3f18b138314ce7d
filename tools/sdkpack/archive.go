package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"time"
)

// made is the time of all files: the earliest that a zip file can hold.
var made = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// prefixed returns files below a folder.
func prefixed(folder string, files map[string][]byte) map[string][]byte {
	out := make(map[string][]byte, len(files))
	for name, b := range files {
		out[folder+"/"+name] = b
	}
	return out
}

// tarball returns a compressed archive of files.
func tarball(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), ModTime: made, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := t.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// zipFile returns a zip file of files; last come those that a reader wants at its end.
func zipFile(files map[string][]byte, last ...string) ([]byte, error) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(n string) bool { return slices.Contains(last, n) })
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range append(names, last...) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: made}
		h.SetMode(0o644)
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
