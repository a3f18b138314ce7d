package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"till/doctor"
)

// The doctor asks the running server for the certificates that it serves.
func TestServedCertificates(t *testing.T) {
	t.Parallel()
	ends := time.Now().Add(72 * time.Hour).Truncate(time.Second)
	for page, want := range map[string][]doctor.ServedCertificate{
		fmt.Sprintf("till_certificate_expiry_timestamp_seconds{name=\"files\"} %d\ntill_certificate_life_seconds{name=\"files\"} 7.776e+06\n", ends.Unix()): {{Ends: ends, Life: 90 * 24 * time.Hour}},
		fmt.Sprintf("till_certificate_expiry_timestamp_seconds{name=\"files\"} %d\ntill_certificate_life_seconds{name=\"other\"} 1\n", ends.Unix()):         {{Ends: ends}},
		"till_certificate_expiry_timestamp_seconds{name=\"acme\"} 0\n":                                                                                      {{}},
		"": nil, // it serves none
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "till_build_info{version=\"v1\"} 1\n"+page)
		}))
		if got := servedCertificates(t.Context(), web.Listener.Addr().String(), ""); !slices.Equal(got, want) {
			t.Errorf("%q: %+v", page, got)
		}
		web.Close()
	}
	if got := servedCertificates(t.Context(), "127.0.0.1:1", ""); got != nil {
		t.Errorf("a server that does not run: %+v", got)
	}
}
