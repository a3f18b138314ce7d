package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"testing"

	"till/console"
	"till/console/shell"
)

// dressed is a language, a theme and a width.
type dressed struct {
	lang, theme string
	width       int
}

// dresses are how each page is looked at: in both languages, themes and widths, and
// in the full run in each of them with each other.
func dresses() (out []dressed) {
	for _, lang := range []string{"en", "fr"} {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int{wide, narrow} {
				if everything || (lang == "en") == (theme == "light") && (lang == "en") == (width == wide) {
					out = append(out, dressed{lang, theme, width})
				}
			}
		}
	}
	return out
}

// notPages are routes that answer with something else than a page.
var notPages = map[string]string{
	"/c/{client}/live": "a stream of hints",
	"/enter/{token}":   "a way in, which leads to another page",
}

// onlyPages is a part of the paths that the sweep looks at, while a page is being
// built.
var onlyPages = os.Getenv("TILL_E2E_PAGES")

// isPage reports whether a route answers with a page: files have an ending.
func isPage(r *shell.Route) bool {
	last := r.Path[strings.LastIndex(r.Path, "/")+1:]
	return strings.Contains(r.Path, onlyPages) && r.Method == http.MethodGet && notPages[r.Path] == "" && !strings.Contains(last, ".")
}

// showroom is a merchant with something on every page.
type showroom struct {
	*till
	values map[string]string // of the placeholders in paths, by the path before them
}

// stories that the showroom's customers live, by the end of their phones.
var showroomPhones = []string{"0002", "0003", "0004", "0007", "0011", "0013", "0014", "0019", "0021", "4567", "4568"}

const (
	hostile      = "<img src=x onerror=alert(1)>\"'{{.}}\u202e"
	longestWords = "Anticonstitutionnellement-Incompréhensibilités-Réapprovisionnements"
)

func newShowroom(t *testing.T) *showroom {
	s := &showroom{till: startDev(t, "--approval-window", "3s"), values: map[string]string{}}
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Internal Server Error <script>alert(1)</script>", http.StatusInternalServerError)
	}))
	t.Cleanup(broken.Close)
	var endpoint struct{ ID string }
	s.api(s.key, http.MethodPost, "/webhook-endpoints", object{"url": broken.URL + "/webhooks", "description": "<img src=x onerror=alert(1)>", "events": []string{"*"}}, &endpoint)
	s.values["/c/{client}/webhooks/"], s.values["/c/{client}/webhooks/{endpoint}/events/"] = endpoint.ID, "1"
	for i, end := range showroomPhones {
		s.pay("24206123"+end, "5000", "ORDER-10"+end, object{"description": []string{"Two loaves", longestWords, hostile}[i%3]})
	}
	s.pay("242061230014", "2000000", longestWords[:60], nil)
	s.values["/c/{client}/payments/"] = s.pay("242061234569", "250000", "ORDER-1042", object{"metadata": object{"note": hostile}})
	s.order("12500", object{"reference": longestWords[:60], "description": hostile})
	s.order("700", object{"reference": nil, "description": nil})
	s.values["/c/{client}/checkouts/"] = s.order("5000", object{"description": longestWords, "return_url": "http://localhost:9/done", "phone": "242061234567"}).ID
	s.values["/c/{client}/wallets/"] = "XAF"
	s.values["/c/{client}/collect/"] = s.values["/c/{client}/payments/"]
	s.until(s.values["/c/{client}/payments/"], "success")
	var key struct {
		Key string `json:"api_key"`
	}
	s.runJSON(&key, "key", "create", "--client", s.client, "--scopes", "payouts:read,payouts:write,refunds:write")
	for _, end := range []string{"4567", "0005", "0014"} {
		var made struct{ ID string }
		s.api(key.Key, http.MethodPost, "/payouts", object{"method": "mtn_momo", "country": "CG", "amount": object{"value": "1200", "currency": "XAF"},
			"recipient": object{"phone": "24206765" + end}, "reference": "SALARY-" + end, "idempotency_key": newUUID()}, &made)
		s.values["/c/{client}/payouts/"] = made.ID
	}
	var refund struct{ ID string }
	s.api(key.Key, http.MethodPost, "/refunds", object{"payment_id": s.values["/c/{client}/payments/"], "amount": object{"value": "100000", "currency": "XAF"},
		"reason": "not_delivered", "idempotency_key": newUUID()}, &refund)
	s.values["/c/{client}/refunds/"] = refund.ID
	return s
}

// address returns where a route is in the showroom.
func (s *showroom) address(t *testing.T, path string) string {
	t.Helper()
	if path == "/{$}" {
		return "/console/"
	}
	if path == "/join/{token}" {
		return strings.TrimPrefix(s.invite("--client", s.client, "--role", "cashier", "--name", "Prudence Ngouabi-Mahoungou"), s.origin)
	}
	address, template := "/console", ""
	for rest := path; rest != ""; {
		text, more, _ := strings.Cut(rest, "{")
		address, template = address+text, template+text
		if more == "" {
			break
		}
		name, after, _ := strings.Cut(more, "}")
		value := s.values[template]
		if name == "client" {
			value = s.client
		}
		if value == "" {
			t.Fatalf("the sweep does not know how to open %s: give newShowroom a value for what follows %s, or notPages a reason", path, template)
		}
		address, template, rest = address+value, template+"{"+name+"}", after
	}
	return address
}

// Every page of the console's own table, with everything on it.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	s := newShowroom(t)
	sweep(t, "all", s, dresses())
}

// Every page of a merchant of whom nothing has happened yet.
func TestEveryEmptyPage(t *testing.T) {
	t.Parallel()
	s := &showroom{till: startDev(t), values: map[string]string{}}
	look := dresses()
	if !everything {
		look = []dressed{{"fr", "light", narrow}}
	}
	sweep(t, "empty", s, look)
}

func sweep(t *testing.T, story string, s *showroom, dresses []dressed) {
	t.Helper()
	visitors := map[shell.Audience]*page{shell.Everyone: newPage(t, story, s.origin), shell.Staff: newPage(t, story, s.origin), shell.House: newPage(t, story, s.origin)}
	visitors[shell.Staff].enterDemo(s.till, "Awa")
	visitors[shell.House].enterDemo(s.till, "Grâce")
	visitors[shell.SignedIn] = visitors[shell.Staff]
	if story == "all" {
		visitors[shell.Staff].link(s.till, longestWords[:60], "5 000")
		s.values["/c/{client}/links/"] = path.Base(visitors[shell.Staff].path())
	}
	for i := range dresses {
		if lang := dresses[i].lang; i > 0 && dresses[i-1].lang == lang {
			continue // this language's pages are looked at once, in all its dresses
		}
		n := 0
		for _, r := range console.Routes {
			if !isPage(&r) || story == "empty" && strings.Contains(strings.Replace(r.Path, "{client}", "", 1), "{") {
				continue
			}
			n++
			p := visitors[r.For]
			p.step = n
			address := s.address(t, r.Path)
			if r.For == shell.Everyone {
				address += "?lang=" + dresses[i].lang
			}
			if status := p.answered(address); status != http.StatusOK {
				t.Errorf("%s: %d", address, status)
				continue
			}
			if !p.is(`decodeURI(location.pathname) === ` + quote(strings.SplitN(address, "?", 2)[0])) {
				continue // it leads to a page that has its own line
			}
			if p.lang() != dresses[i].lang {
				p.setLanguage(dresses[i].lang)
				p.open(address)
			}
			p.until(`document.readyState === "complete"`)
			name := strings.Trim(strings.NewReplacer("/c/{client}/", "", "/", "-", "{", "", "}", "").Replace(r.Path), "-")
			for _, d := range dresses {
				if d.lang == dresses[i].lang {
					p.dress(d.theme, d.width)
					p.inspect(name)
				}
			}
		}
	}
}

// setLanguage sets a person's language, from pages without the switch too.
func (p *page) setLanguage(lang string) {
	p.t.Helper()
	p.leave(func() {
		eval[bool](p, `(() => { const f = document.createElement("form"); f.method = "post"; f.action = "/console/me/language";
			for (const [n, v] of [["language", `+quote(lang)+`], ["back", "/console/me"]]) {
			const i = document.createElement("input"); i.name = n; i.value = v; f.append(i); } document.body.append(f); f.submit(); return true; })()`)
	})
}
