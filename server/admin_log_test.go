package server_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"till/internal/logs"
)

// The admin address shows the last lines of the log, and nothing where no ring is.
func TestTheAdminAddressShowsTheLog(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	var w bytes.Buffer
	c.LogRing = logs.NewRing(&w)
	c.AdminListen, c.Log = "127.0.0.1:0", logs.New(c.LogRing, true, slog.LevelDebug)
	r := start(t, c)
	r.await(r.create("242061234567"), "success")
	status, body := r.admin("/debug/log")
	// The line is written after the commit, which a client can see before.
	for end := time.Now().Add(time.Minute); !strings.Contains(body, `"msg":"ended"`) && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		status, body = r.admin("/debug/log")
	}
	if status != http.StatusOK || !strings.Contains(body, `"msg":"ended"`) || strings.Contains(body, "242061234567") || strings.Contains(body, r.Demo().APIKey) {
		t.Errorf("%d %.2000s", status, body)
	}
}
