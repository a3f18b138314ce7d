package backup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// bucket is a place in object storage that speaks S3's protocol. Its credentials
// and address come from the environment variables that other tools read, too.
type bucket struct {
	credentials
	client   *http.Client
	base     *url.URL // of the bucket
	name     string   // the place as it was named
	prefix   string   // "" or with a slash at its end
	partSize int
	wait     func(ctx context.Context, d time.Duration) error
}

// Limits of the transfer to object storage.
const (
	defaultPartSize = 16 << 20        // bytes, in memory; S3 wants at least 5 MiB
	maxParts        = 10_000          // S3's limit: backups of up to 156 GiB
	maxTries        = 5               // of each request
	answerTimeout   = 2 * time.Minute // for one request, and for each silence of a download
	maxAnswer       = 8 << 20         // bytes of an answer that is no backup
)

// newBucket reads s3://BUCKET/PREFIX.
func newBucket(text string, env func(string) string) (*bucket, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the place must look like s3://BUCKET/PREFIX")
	}
	b := &bucket{
		credentials: credentials{id: env("AWS_ACCESS_KEY_ID"), secret: env("AWS_SECRET_ACCESS_KEY"), token: env("AWS_SESSION_TOKEN"),
			region: cmp.Or(env("AWS_REGION"), env("AWS_DEFAULT_REGION"), "us-east-1")},
		name: text, partSize: defaultPartSize, wait: sleep,
	}
	if b.id == "" || b.secret == "" {
		return nil, errors.New("object storage needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment")
	}
	if b.prefix = strings.Trim(u.Path, "/"); b.prefix != "" {
		b.prefix += "/"
	}
	if endpoint := cmp.Or(env("AWS_ENDPOINT_URL_S3"), env("AWS_ENDPOINT_URL")); endpoint != "" {
		b.base, err = url.Parse(strings.TrimRight(endpoint, "/") + "/" + u.Host)
		if err != nil || b.base.Scheme != "https" && b.base.Scheme != "http" || b.base.Host == "" || b.base.User != nil {
			return nil, errors.New("AWS_ENDPOINT_URL_S3 must look like https://storage.example.com")
		}
	} else {
		b.base = &url.URL{Scheme: "https", Host: u.Host + ".s3." + b.region + ".amazonaws.com"}
	}
	b.client = &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: answerTimeout, TLSHandshakeTimeout: 30 * time.Second, MaxIdleConns: 2,
		},
		// A signature is good for one address only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return b, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// String implements Place.
func (b *bucket) String() string { return b.name }

// storageError is an answer that refuses.
type storageError struct {
	Status  int    `xml:"-"`
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
}

func (e *storageError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("it answered %d", e.Status)
	}
	return fmt.Sprintf("it answered %d, %s: %s", e.Status, e.Code, e.Message)
}

// do sends a request and tries again after a failure that may pass. The caller closes
// the body of the answer.
func (b *bucket) do(ctx context.Context, method, key string, query url.Values, body []byte) (*http.Response, error) {
	sum := emptySHA256
	if len(body) > 0 {
		sum = hexSHA256(body)
	}
	for n := 1; ; n++ {
		resp, err := b.once(ctx, method, key, query, body, sum)
		var refused *storageError
		passes := err != nil && (!errors.As(err, &refused) || refused.Status >= 500 || refused.Status == http.StatusTooManyRequests)
		if err == nil || !passes || n == maxTries || ctx.Err() != nil {
			if err != nil {
				err = fmt.Errorf("%w %s: %w", errPlace, b.name, err)
			}
			return resp, err
		}
		if err := b.wait(ctx, time.Second<<n); err != nil {
			return nil, err
		}
	}
}

func (b *bucket) once(ctx context.Context, method, key string, query url.Values, body []byte, sum string) (*http.Response, error) {
	u := *b.base
	u.Path = strings.TrimRight(u.Path, "/") + "/" + key
	u.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	b.sign(r, sum, time.Now())
	resp, err := b.client.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	e := &storageError{Status: resp.StatusCode}
	_ = xml.Unmarshal(text, e) // a proxy may have answered something else
	return nil, e
}

// call sends a request and reads its answer into a value; nil passes it over.
func (b *bucket) call(ctx context.Context, method, key string, query url.Values, body []byte, into any) error {
	resp, err := b.do(ctx, method, key, query, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w %s: %w", errPlace, b.name, err)
	}
	// Storage answers 200 before it knows that it cannot put the parts together.
	refused := &storageError{Status: resp.StatusCode}
	if xml.Unmarshal(text, &struct {
		XMLName xml.Name `xml:"Error"`
		*storageError
	}{storageError: refused}) == nil && refused.Code != "" {
		return fmt.Errorf("%w %s: %w", errPlace, b.name, refused)
	}
	if into == nil {
		return nil
	}
	if err := xml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w %s: its answer cannot be read: %w", errPlace, b.name, err)
	}
	return nil
}

// List implements Place.
func (b *bucket) List(ctx context.Context) (names []string, err error) {
	query := url.Values{"list-type": {"2"}, "prefix": {b.prefix}, "delimiter": {"/"}}
	for {
		var page struct {
			Contents              []struct{ Key string }
			IsTruncated           bool
			NextContinuationToken string
		}
		if err := b.call(ctx, http.MethodGet, "", query, nil, &page); err != nil {
			return nil, err
		}
		for _, c := range page.Contents {
			names = append(names, strings.TrimPrefix(c.Key, b.prefix))
		}
		if !page.IsTruncated || page.NextContinuationToken == "" {
			return names, nil
		}
		if len(names) > maxListed {
			return nil, fmt.Errorf("%s holds more than %d files: give the backups a prefix of their own", b, maxListed)
		}
		query.Set("continuation-token", page.NextContinuationToken)
	}
}

// Open implements Place.
func (b *bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	resp, err := b.do(ctx, http.MethodGet, b.prefix+name, nil, nil)
	if err != nil {
		return nil, err
	}
	return &download{ReadCloser: resp.Body, place: b}, nil
}

// download is the body of a backup. An error of the network is not damage of the
// backup, and a body that ends too early is noticed by its length.
type download struct {
	io.ReadCloser
	place *bucket
}

func (d *download) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w %s: %w", errPlace, d.place.name, err)
	}
	return n, err
}

// Remove implements Place.
func (b *bucket) Remove(ctx context.Context, name string) error {
	return b.call(ctx, http.MethodDelete, b.prefix+name, nil, nil, nil)
}

// Put implements Place: in parts, which become an object when all are there.
func (b *bucket) Put(ctx context.Context, name string, write func(w io.Writer) error) (int64, error) {
	key := b.prefix + name
	var begun struct{ UploadId string }
	if err := b.call(ctx, http.MethodPost, key, url.Values{"uploads": {""}}, nil, &begun); err != nil {
		return 0, err
	}
	up := &upload{ctx: ctx, b: b, key: key, id: begun.UploadId, part: make([]byte, 0, b.partSize)}
	err := write(up)
	if err == nil {
		err = up.complete()
	}
	if err != nil {
		// The parts cost money until they are deleted. The command may have been
		// asked to stop, so this has its own time.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if e := b.call(ctx, http.MethodDelete, key, url.Values{"uploadId": {up.id}}, nil, nil); e != nil {
			err = errors.Join(err, fmt.Errorf("the parts were not deleted: %w", e))
		}
		return 0, err
	}
	return up.sent, nil
}

// upload collects what is written into parts.
type upload struct {
	ctx     context.Context
	b       *bucket
	key, id string
	part    []byte
	etags   []string
	sent    int64
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), cap(u.part)-len(u.part))
		u.part, p = append(u.part, p[:k]...), p[k:]
		if len(u.part) == cap(u.part) {
			if err := u.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (u *upload) flush() error {
	if len(u.etags) == maxParts {
		return fmt.Errorf("the backup is larger than %d GiB: use a folder, or PostgreSQL", maxParts*int64(u.b.partSize)>>30)
	}
	query := url.Values{"partNumber": {strconv.Itoa(len(u.etags) + 1)}, "uploadId": {u.id}}
	resp, err := u.b.do(u.ctx, http.MethodPut, u.key, query, u.part)
	if err != nil {
		return err
	}
	resp.Body.Close()
	u.etags, u.sent, u.part = append(u.etags, resp.Header.Get("ETag")), u.sent+int64(len(u.part)), u.part[:0]
	return nil
}

func (u *upload) complete() error {
	if len(u.part) > 0 {
		if err := u.flush(); err != nil {
			return err
		}
	}
	type part struct {
		PartNumber int
		ETag       string
	}
	list := struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []part
	}{}
	for i, tag := range u.etags {
		list.Part = append(list.Part, part{i + 1, tag})
	}
	body, err := xml.Marshal(list)
	if err != nil {
		return err
	}
	return u.b.call(u.ctx, http.MethodPost, u.key, url.Values{"uploadId": {u.id}}, body, nil)
}
