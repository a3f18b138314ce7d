package backup

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// storage is object storage that knows one account.
type storage struct {
	t    *testing.T
	keys credentials

	mu      sync.Mutex
	objects map[string][]byte
	uploads map[string]map[int][]byte // by id
	fail    func(r *http.Request) int // answer with this status; 0: do not
	calls   []string
}

func newStorage(t *testing.T) (*storage, func(string) string) {
	s := &storage{t: t, keys: credentials{id: "AKID", secret: "s3cr3t", region: "eu-test-1"}, objects: map[string][]byte{}, uploads: map[string]map[int][]byte{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	env := map[string]string{"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s3cr3t", "AWS_REGION": "eu-test-1", "AWS_ENDPOINT_URL_S3": server.URL}
	return s, func(name string) string { return env[name] }
}

// authentic signs the request as it came and compares.
func (s *storage) authentic(r *http.Request, body []byte) bool {
	at, err := time.Parse(amzTime, r.Header.Get("X-Amz-Date"))
	if err != nil || r.Header.Get("X-Amz-Content-Sha256") != hexSHA256(body) {
		return false
	}
	again := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: http.Header{}}
	_, signed, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	signed, _, _ = strings.Cut(signed, ",")
	for _, name := range strings.Split(signed, ";") {
		if name != "host" {
			again.Header.Set(name, r.Header.Get(name))
		}
	}
	s.keys.sign(again, hexSHA256(body), at)
	return again.Header.Get("Authorization") == r.Header.Get("Authorization")
}

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	q := r.URL.Query()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	if !s.authentic(r, body) {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `<Error><Code>SignatureDoesNotMatch</Code><Message>no</Message></Error>`)
		return
	}
	if s.fail != nil {
		if status := s.fail(r); status != 0 {
			w.WriteHeader(status)
			io.WriteString(w, `<Error><Code>Broken</Code><Message>it is broken</Message></Error>`)
			return
		}
	}
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	switch id := q.Get("uploadId"); {
	case r.Method == http.MethodPost && q.Has("uploads"):
		id := strconv.Itoa(len(s.uploads) + 1)
		s.uploads[id] = map[int][]byte{}
		fmt.Fprintf(w, `<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>`, id)
	case r.Method == http.MethodPut && id != "":
		n, _ := strconv.Atoi(q.Get("partNumber"))
		s.uploads[id][n] = body
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodPost && id != "":
		s.complete(w, key, id, body)
	case r.Method == http.MethodDelete && id != "":
		delete(s.uploads, id)
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
	case q.Get("list-type") == "2":
		s.list(w, q.Get("prefix"), q.Get("continuation-token"))
	case s.objects[key] == nil:
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Write(s.objects[key])
	}
}

func etag(b []byte) string { sum := md5.Sum(b); return `"` + hex.EncodeToString(sum[:]) + `"` }

func (s *storage) complete(w io.Writer, key, id string, body []byte) {
	var list struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	err := xml.Unmarshal(body, &list)
	var whole []byte
	for i, p := range list.Part {
		part := s.uploads[id][p.PartNumber]
		if p.PartNumber != i+1 || p.ETag != etag(part) || i+1 < len(list.Part) && len(part) < 5<<20 {
			err = errors.New("a wrong part")
		}
		whole = append(whole, part...)
	}
	if err != nil {
		io.WriteString(w, `<Error><Code>InvalidPart</Code><Message>no</Message></Error>`) // with 200, as S3 does
		return
	}
	s.objects[key] = whole
	delete(s.uploads, id)
	io.WriteString(w, `<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>`)
}

// list answers two names at a time.
func (s *storage) list(w io.Writer, prefix, after string) {
	var keys []string
	for k := range s.objects {
		if strings.HasPrefix(k, prefix) && k > after {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	fmt.Fprint(w, `<ListBucketResult>`)
	for _, k := range keys[:min(2, len(keys))] {
		fmt.Fprintf(w, `<Contents><Key>%s</Key></Contents>`, k)
	}
	if len(keys) > 2 {
		fmt.Fprintf(w, `<IsTruncated>true</IsTruncated><NextContinuationToken>%s</NextContinuationToken>`, keys[1])
	}
	fmt.Fprint(w, `</ListBucketResult>`)
}

func newTestBucket(t *testing.T, env func(string) string) *bucket {
	t.Helper()
	p, err := OpenPlace("s3://bucket/till", env)
	if err != nil {
		t.Fatal(err)
	}
	b := p.(*bucket)
	b.partSize = 5 << 20
	b.wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return b
}

func TestObjectStorage(t *testing.T) {
	t.Parallel()
	s, env := newStorage(t)
	b, ctx := newTestBucket(t, env), t.Context()
	big := bytes.Repeat([]byte("0123456789abcdef"), 11<<16) // 11 MiB: three parts
	tries := 0
	s.fail = func(r *http.Request) int { // each request fails twice before it goes well
		if tries++; tries%3 != 0 {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	for i := range 5 {
		n, err := b.Put(ctx, fmt.Sprintf("till-0123456789ab-2026111%dT133001.000Z.tar.gz", i), func(w io.Writer) error { _, err := w.Write(big); return err })
		if err != nil || n != int64(len(big)) {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	names, err := names(ctx, b, "")
	if err != nil || len(names) != 5 {
		t.Fatalf("%v, %v", names, err)
	}
	in, err := b.Open(ctx, names[0].String())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	for _, n := range names[:2] {
		if err := SetMark(ctx, b, n, Drilled, "good"); err != nil {
			t.Fatal(err)
		}
	}
	// The marks are small objects of their own; two backups and their marks are left.
	got, err := (Keep{Days: 2}).Prune(ctx, b, "0123456789ab", Guard{Now: names[0].Taken.Add(minAge)})
	if err != nil || len(got.Removed) != 3 || len(s.objects) != 4 {
		t.Errorf("pruned %v, %v; %d are left", got, err, len(s.objects))
	}
}

func TestObjectStorageThatRefuses(t *testing.T) {
	t.Parallel()
	s, env := newStorage(t)
	b, ctx := newTestBucket(t, env), t.Context()
	write := func(w io.Writer) error { _, err := w.Write(make([]byte, 6<<20)); return err }
	name := "till-0123456789ab-20261117T133001.000Z.tar.gz"
	for what, fail := range map[string]func(r *http.Request) int{
		"a part is refused":          func(r *http.Request) int { return ifPut(r, http.StatusForbidden) },
		"parts fail again and again": func(r *http.Request) int { return ifPut(r, http.StatusInternalServerError) },
	} {
		s.fail = fail
		if _, err := b.Put(ctx, name, write); !errors.Is(err, errPlace) || !strings.Contains(err.Error(), "Broken") {
			t.Errorf("%s: %v", what, err)
		}
		if len(s.objects) > 0 || len(s.uploads) > 0 {
			t.Errorf("%s: %d objects and %d uploads are left", what, len(s.objects), len(s.uploads))
		}
	}
	s.fail = nil
	if _, err := b.Put(ctx, name, func(io.Writer) error { return errors.New("the disk broke") }); err == nil || len(s.uploads) > 0 {
		t.Errorf("a source that breaks: %v, %d uploads are left", err, len(s.uploads))
	}
	if _, err := b.Open(ctx, name); !errors.Is(err, errPlace) {
		t.Errorf("a backup that is not there: %v", err)
	}
	b.secret = "wrong"
	if _, err := b.List(ctx); err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with a wrong secret: %v", err)
	}
	for text, env := range map[string]func(string) string{
		"s3://bucket/till": func(string) string { return "" },
		"s3:///till":       env,
		"ftp://host/till":  env,
		"":                 env,
	} {
		if p, err := OpenPlace(text, env); err == nil {
			t.Errorf("%q is %v", text, p)
		}
	}
}

func ifPut(r *http.Request, status int) int {
	if r.Method == http.MethodPut {
		return status
	}
	return 0
}
