package backup

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// credentials sign requests to object storage, by AWS Signature Version 4:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
type credentials struct {
	id, secret, token string
	region            string
}

const (
	amzTime     = "20060102T150405Z"
	emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// sign adds the signature of a request whose body has the given SHA-256, in
// hexadecimal digits. Every header that is set before it is signed.
func (c *credentials) sign(r *http.Request, bodySHA256 string, at time.Time) {
	at = at.UTC()
	r.Header.Set("X-Amz-Date", at.Format(amzTime))
	r.Header.Set("X-Amz-Content-Sha256", bodySHA256)
	if c.token != "" {
		r.Header.Set("X-Amz-Security-Token", c.token)
	}
	names, headers := canonicalHeaders(r)
	canonical := strings.Join([]string{r.Method, canonicalPath(r.URL), canonicalQuery(r.URL), headers, names, bodySHA256}, "\n")
	day := at.Format("20060102")
	scope := day + "/" + c.region + "/s3/aws4_request"
	text := strings.Join([]string{"AWS4-HMAC-SHA256", at.Format(amzTime), scope, hexSHA256([]byte(canonical))}, "\n")
	key := []byte("AWS4" + c.secret)
	for _, part := range []string{day, c.region, "s3", "aws4_request"} {
		key = hmacSHA256(key, part)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+c.id+"/"+scope+",SignedHeaders="+names+",Signature="+hex.EncodeToString(hmacSHA256(key, text)))
}

func hmacSHA256(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonicalHeaders returns the names of all headers, and the headers with their
// values, a line for each.
func canonicalHeaders(r *http.Request) (names, lines string) {
	values := map[string]string{"host": cmp.Or(r.Host, r.URL.Host)}
	for name, v := range r.Header {
		values[strings.ToLower(name)] = strings.TrimSpace(strings.Join(v, ","))
	}
	sorted := make([]string, 0, len(values))
	for name := range values {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	var b strings.Builder
	for _, name := range sorted {
		b.WriteString(name + ":" + values[name] + "\n")
	}
	return strings.Join(sorted, ";"), b.String()
}

// canonicalPath returns the path with each part encoded once, as S3 wants it.
func canonicalPath(u *url.URL) string {
	parts := strings.Split(cmp.Or(u.Path, "/"), "/")
	for i := range parts {
		parts[i] = escapeStrictly(parts[i])
	}
	return strings.Join(parts, "/")
}

func canonicalQuery(u *url.URL) string {
	var pairs []string
	for name, values := range u.Query() {
		for _, v := range values {
			pairs = append(pairs, escapeStrictly(name)+"="+escapeStrictly(v))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escapeStrictly encodes all bytes but letters, digits and -_.~
func escapeStrictly(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.~", c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
