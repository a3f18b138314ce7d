package console

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"till"
	"till/console/list"
	"till/console/shell"
	"till/people"
)

// logInto makes the console anew, with a log that is collected; the returned function
// stops it, which writes the log out.
func (w *world) logInto(b *bytes.Buffer) (stop func()) {
	w.t.Helper()
	c, who := w.console.Config, w.console.SessionOf
	c.Log = slog.New(slog.NewTextHandler(b, nil))
	var err error
	if w.console, err = New(c); err != nil {
		w.t.Fatal(err)
	}
	w.console.SessionOf = who
	return w.console.Stop
}

// countingReader is an endless body.
type countingReader struct{ n int64 }

func (r *countingReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	r.n += int64(len(b))
	if r.n > 8<<20 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(b), nil
}

// No body is read beyond the limit of a form, and none becomes a file, whatever the
// method says.
func TestABodyIsBoundedWhateverItsMethod(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := newWorld(t, sqlite())
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		for _, path := range []string{w.path("/payments.csv"), w.path("/payments/export"), w.path("/audit.csv"), shell.Prefix + "/enter", shell.Prefix + "/me"} {
			for kind, head := range map[string]string{
				"multipart/form-data; boundary=x":   "--x\r\nContent-Disposition: form-data; name=\"for\"; filename=\"f\"\r\n\r\n",
				"application/x-www-form-urlencoded": "for=",
			} {
				body := &countingReader{}
				r := httptest.NewRequest(method, "http://localhost:8080"+path, io.MultiReader(strings.NewReader(head), body))
				r.RemoteAddr = "127.0.0.1:50000"
				r.Header.Set("Cookie", "till=token")
				r.Header.Set("Sec-Fetch-Site", "same-origin")
				r.Header.Set("Content-Type", kind)
				w.do(r)
				if body.n > 4*64<<10 {
					t.Errorf("%s %s: %d bytes were read of %s", method, path, body.n, kind)
				}
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "multipart-*")); len(left) > 0 {
		t.Errorf("bodies became files: %v", left)
	}
}

// sources returns the files of the console and its rooms that are no tests.
func sources(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 60 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// Handlers look at PostForm and the address. FormValue and its like would read
// files of any method into memory and onto the disk.
func TestNoHandlerReadsFiles(t *testing.T) {
	t.Parallel()
	files := sources(t)
	forbidden := regexp.MustCompile(`\.(FormValue|FormFile|ParseMultipartForm|MultipartForm|MultipartReader)\b`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := forbidden.Find(text); found != nil {
			t.Errorf("%s uses %s", name, found)
		}
	}
}

// Many forms of another site are a line a second, without the token of the link that they were
// sent to.
func TestFormsOfAnotherSiteAreALineASecondWithoutAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	var log bytes.Buffer
	flush := w.logInto(&log)
	began := time.Now()
	for range 300 {
		r := request(http.MethodPost, shell.Prefix+"/join/canary-of-a-link", url.Values{"name": {"x"}})
		r.Header.Set("Origin", "https://evil.example/"+strings.Repeat("o", 10_000))
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if a := w.do(r); a.Code != http.StatusForbidden {
			t.Fatalf("it is answered %d", a.Code)
		}
	}
	flush()
	text, seconds, counted := log.String(), int(time.Since(began)/time.Second), 0
	for _, count := range regexp.MustCompile(`count=(\d+)`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(count[1])
		counted += n
	}
	if lines := strings.Count(text, "\n"); lines > 2+seconds || len(text) > 1000*lines || counted != 300 || strings.Contains(text, "canary") ||
		!strings.Contains(text, "reason=foreign_site") || !strings.Contains(text, `route="POST /console/join/{token}"`) {
		t.Errorf("%d bytes: %.1000s", len(text), text)
	}
}

// Who tries out links is told when to come back, and the log counts it. Another
// site's page cannot use up the tries of those who view it.
func TestInventedLinksAreToldToComeBack(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	var log bytes.Buffer
	flush := b.logInto(&log)
	b.post(b.invite(b.client.ID, till.RoleCashier, "brice@shop.example"), url.Values{"name": {"Brice"}, "password": {password}}, "/console/")
	open := func(load bool) int {
		r := request(http.MethodGet, shell.Prefix+"/join/"+till.NewID(b.store.Now()).String(), nil)
		if load {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "no-cors")
			r.Header.Set("Sec-Fetch-Dest", "image")
		}
		a := b.do(r)
		if (a.Code == http.StatusTooManyRequests) != (a.Header().Get("Retry-After") != "") {
			t.Errorf("%d with Retry-After %q", a.Code, a.Header().Get("Retry-After"))
		}
		return a.Code
	}
	for range 30 {
		if got := open(true); got != http.StatusForbidden {
			t.Fatalf("an image of another site is answered %d", got)
		}
	}
	if got := open(false); got != http.StatusOK {
		t.Errorf("the first link is answered %d", got)
	}
	for range 60 { // more than a slow machine refills
		open(false)
	}
	if got := open(false); got != http.StatusTooManyRequests {
		t.Errorf("the last link is answered %d", got)
	}
	if flush(); !strings.Contains(log.String(), "reason=wait_first status=429") || !strings.Contains(log.String(), `route="GET /console/join/{token}"`) {
		t.Errorf("the log says %s", log.String())
	}
	b.cookie, b.devices = nil, nil
	b.post(shell.Prefix+"/enter", url.Values{"login": {"brice@shop.example"}, "password": {password}}, "/console/")
}

// After a good sign-in the browser is known: while others try out the login, the
// right password still works there, and nowhere else. So it does after leaving.
func TestABrowserThatSignedInIsKnown(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	const login = "brice@shop.example"
	b.post(b.invite(b.client.ID, till.RoleCashier, login), url.Values{"name": {"Brice"}, "password": {password}}, "/console/")
	b.post(shell.Prefix+"/leave", url.Values{}, "/console/enter")
	if b.devices == nil || b.devices.MaxAge < 100*24*3600 || b.cookie != nil {
		t.Fatalf("left with %v and %v", b.devices, b.cookie)
	}
	known := b.devices
	enter := func(word string) int {
		return b.send(http.MethodPost, shell.Prefix+"/enter", url.Values{"login": {login}, "password": {word}}).Code
	}
	b.devices = nil
	for enter("wrong wrong wrong") != http.StatusTooManyRequests { // a slow machine needs more than six
	}
	b.devices = known
	if got := enter(password); got != http.StatusSeeOther {
		t.Errorf("the known browser is answered %d", got)
	}
	if b.devices.Value == known.Value || strings.Count(b.devices.Value, ".") != 0 {
		t.Errorf("the token was not renewed: %q", b.devices.Value)
	}
}

// slowReader is a browser that reads its answer when it is told to.
type slowReader struct {
	http.ResponseWriter
	began chan struct{}
	end   chan struct{}
}

func (s *slowReader) Write(b []byte) (int, error) {
	s.began <- struct{}{}
	<-s.end
	return s.ResponseWriter.Write(b)
}

// Who reads tables slowly holds up nobody but themselves, and has one at a time.
func TestSlowReadersOfTablesHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.pay("242061230001", 5000, "ORDER-1", "x")
	persons := map[string]people.Session{}
	for _, name := range []string{"a", "b", "c"} {
		w.be(till.RoleOwner, "en")
		persons[name] = w.visitor
	}
	w.console.SessionOf = func(_ *shell.Visit, token string) (*people.Session, error) { s := persons[token]; return &s, nil }
	ask := func(name, path string) *http.Request {
		r := request(http.MethodGet, w.path(path), nil)
		r.Header.Set("Cookie", "till="+name)
		return r
	}
	for _, path := range []string{"/payments.csv", "/audit.csv"} { // as many as are made at once
		slow := &slowReader{began: make(chan struct{}, list.MaxAtOnce), end: make(chan struct{})}
		ended := make(chan struct{})
		for _, name := range []string{"a", "b"} {
			go func() {
				w.console.ServeHTTP(&slowReader{httptest.NewRecorder(), slow.began, slow.end}, ask(name, path))
				ended <- struct{}{}
			}()
		}
		for range list.MaxAtOnce {
			<-slow.began
		}
		for _, other := range []string{"/payments.csv", "/audit.csv", "/wallets/XAF/statement.csv"} {
			if a := w.do(ask("c", other)); a.Code != http.StatusOK && a.Code != http.StatusNotFound {
				t.Errorf("beside slow readers of %s, %s of somebody else is answered %d", path, other, a.Code)
			}
		}
		if a := w.do(ask("a", path)); a.Code != http.StatusTooManyRequests {
			t.Errorf("a second table is answered %d", a.Code)
		}
		close(slow.end)
		for range list.MaxAtOnce {
			<-ended
		}
	}
}

// timed notes how long a body may take.
type timed struct {
	*httptest.ResponseRecorder
	longest time.Duration
}

func (w *timed) SetReadDeadline(at time.Time) error {
	w.longest = max(w.longest, time.Until(at))
	return nil
}

// Only who has a session may take a minute over a form; a stranger has the time that
// the server gives to everybody.
func TestStrangersAreNotGivenMoreTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	for path, given := range map[string]bool{"/enter": false, "/enter/code": false, "/join/x": false, "/me": true} {
		a := &timed{ResponseRecorder: httptest.NewRecorder()}
		w.console.ServeHTTP(a, request(http.MethodPost, shell.Prefix+path, url.Values{"name": {"x"}}))
		if got := a.longest > 30*time.Second; got != given {
			t.Errorf("POST %s: %s", path, a.longest)
		}
	}
}
