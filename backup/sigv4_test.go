package backup

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// The examples that AWS publishes:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
func TestSignaturesArePublishedOnes(t *testing.T) {
	t.Parallel()
	c := &credentials{id: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", region: "us-east-1"}
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	const host = "https://examplebucket.s3.amazonaws.com"
	for _, e := range []struct {
		name, method, url, body string
		header                  map[string]string
		signature               string
	}{
		{"get an object", "GET", host + "/test.txt", "", map[string]string{"Range": "bytes=0-9"},
			"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"put an object", "PUT", host + "/test$file.text", "Welcome to Amazon S3.",
			map[string]string{"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY"},
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"a query without a value", "GET", host + "/?lifecycle", "", nil,
			"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"list objects", "GET", host + "/?max-keys=2&prefix=J", "", nil,
			"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		r, err := http.NewRequest(e.method, e.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range e.header {
			r.Header.Set(name, v)
		}
		c.sign(r, hexSHA256([]byte(e.body)), at)
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, ",Signature="+e.signature) {
			t.Errorf("%s: got %s", e.name, got)
		}
	}
}
