package pay

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"till"
	"till/account"
	"till/checkout"
	"till/console/look"
	"till/console/words"
	"till/store"
	"till/store/checkouts"
)

// visit is one request for a page.
type visit struct {
	p *Pages
	w http.ResponseWriter
	r *http.Request

	token string
	lang  string
	words *words.Catalogue
	clock look.Clock

	who     *account.Session
	profile *till.Profile
	view    checkout.View
	own     *checkout.Asked // whose address this is
	ask     *till.Ask       // its row
	spent   bool
	sureOf  *wish // what the page "is this right?" is about
}

// never is the end of what has none.
const never = till.Time(1<<63 - 1)

// blank returns what a payer of a link would pay, before there is a checkout: it is never
// stored.
func blank(l *till.Link) *till.Checkout {
	c := &till.Checkout{ClientID: l.ClientID, ID: l.ID, LinkID: l.ID, State: till.CheckoutOpen, Amount: l.Amount, Country: l.Country, Methods: l.Methods, Language: l.Language,
		ExpiresAt: l.ExpiresAt}
	if c.ExpiresAt.IsZero() {
		c.ExpiresAt = never
	}
	return c
}

// read finds the checkout of the address, and its merchant.
func (v *visit) read() error {
	known := v.p.isKnown(v.token)
	if _, empty := v.p.unknown.Empty(v.network(), v.now()); empty && !known {
		return errMissing
	}
	var err error
	if v.view, err = v.p.c.Checkouts.Find(v.r.Context(), v.token); err != nil {
		if till.ErrorCode(err) == till.CodeCheckoutNotFound {
			v.p.unknown.Take(v.network(), v.now())
		}
		return err
	}
	if !known {
		v.p.remember(v.token)
	}
	if v.view.Link != nil {
		v.view.Checkout = blank(v.view.Link)
	}
	c := v.view.Checkout
	if v.who, err = v.p.c.Accounts.Open(v.r.Context(), c.ClientID); err != nil {
		return err
	}
	if v.profile, err = v.p.c.Accounts.Profile(v.r.Context(), c.ClientID); err != nil {
		return err
	}
	v.setLanguage(languageOf(v.r, c.Language, v.profile.Language))
	if v.view.Last != nil && v.view.Last.N >= till.MaxAsks {
		return v.readSpent()
	}
	return nil
}

// readSpent finds out whether there were as many asks as there may be.
func (v *visit) readSpent() error {
	return v.p.c.Store.View(v.r.Context(), func(tx *store.Tx) error {
		asks, err := checkouts.Asks(v.r.Context(), tx, v.ref())
		made := 0
		for i := range asks {
			if asks[i].Refused == "" || !asks[i].PaymentID.IsZero() {
				made++
			}
		}
		v.spent = made >= till.MaxAsks || len(asks) >= till.MaxAskRows
		return err
	})
}

func (v *visit) ref() store.Ref {
	return store.Ref{Client: v.view.Checkout.ClientID, ID: v.view.Checkout.ID}
}

// readOwn reads the ask whose address this is: its number and what only its payer knows.
func (v *visit) readOwn(rest string) error {
	digits, mac, found := strings.Cut(rest, "-")
	n, err := strconv.Atoi(digits)
	c := v.view.Checkout
	if v.view.Link != nil || !found || err != nil || n < 1 || strconv.Itoa(n) != digits || !v.p.c.Checkouts.Keys().IsAskMAC(c.ClientID, c.ID, n, mac) {
		v.p.unknown.Take(v.network(), v.now())
		return errMissing
	}
	if last := v.view.Last; last != nil && last.N == n {
		v.ask, v.own = last, v.lastAsked()
		return nil
	}
	return v.p.c.Store.View(v.r.Context(), func(tx *store.Tx) error {
		asks, err := checkouts.Asks(v.r.Context(), tx, v.ref())
		if err != nil {
			return err
		}
		if n > len(asks) {
			return errMissing
		}
		v.ask = &asks[n-1]
		v.own = &checkout.Asked{N: n, Refused: v.ask.Refused != ""}
		v.own.Payment, err = tx.PaymentByKey(v.r.Context(), c.ClientID, v.ask.Key)
		return err
	})
}

// lastAsked returns the last ask, nil if there is none.
func (v *visit) lastAsked() *checkout.Asked {
	a := v.view.Last
	if a == nil {
		return nil
	}
	return &checkout.Asked{N: a.N, Refused: a.Refused != "", Payment: v.view.Payment}
}

// scene returns what the face depends on.
func (v *visit) scene(markets []*market) *checkout.Scene {
	c := v.view.Checkout
	s := &checkout.Scene{Own: v.own, Last: v.lastAsked(), Paid: c.State == till.CheckoutPaid, Spent: v.spent, Expires: c.ExpiresAt, Now: v.view.Now,
		Over: c.State == till.CheckoutExpired || c.State == till.CheckoutCancelled}
	if l := v.view.Link; l != nil {
		s.Over = !l.Takes(v.view.Now)
	}
	if v.own != nil && s.Last != nil && v.own.N == s.Last.N {
		s.Last = v.own
	}
	s.Closed = v.view.Off || v.who.Client.Suspended || v.name() == "" || !anyOpen(markets)
	return s
}

// name returns the merchant's name, "" if pages may show none.
func (v *visit) name() string {
	return checkout.NameOnPages(v.who.Client.Name, v.profile.PayName)
}

// base returns the path of the page that is shared.
func (v *visit) base() string { return Prefix + v.token }

// ownPath returns the address of an ask.
func (v *visit) ownPath(n int) string {
	c := v.view.Checkout
	return v.base() + "/" + strconv.Itoa(n) + "-" + v.p.c.Checkouts.Keys().AskMAC(c.ClientID, c.ID, n)
}

// said returns a path in the language that was chosen, if one was.
func (v *visit) said(path string) string {
	if l := v.r.URL.Query().Get("l"); catalogues[l] != nil {
		return path + "?l=" + l
	}
	return path
}

func (v *visit) setLanguage(lang string) {
	zone := till.DefaultZone
	if v.profile != nil && v.profile.Zone != "" {
		zone = v.profile.Zone
	}
	v.lang, v.words, v.clock = lang, catalogues[lang], look.NewClock(lang, zone)
}

// languageOf returns the language of a page: the one that was chosen, else the checkout's, the
// browser's, the merchant's.
func languageOf(r *http.Request, fixed, merchant string) string {
	for _, l := range []string{r.URL.Query().Get("l"), fixed} {
		if catalogues[l] != nil {
			return l
		}
	}
	for _, part := range strings.Split(r.Header.Get("Accept-Language"), ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		tag, _, _ = strings.Cut(strings.ToLower(tag), "-")
		if catalogues[tag] != nil {
			return tag
		}
	}
	if catalogues[merchant] != nil {
		return merchant
	}
	return look.English
}

// minZipped is the smallest answer that is worth compressing.
const minZipped = 600

var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestCompression) // the level is good
	return z
}}

// answer sends a whole answer.
func (v *visit) answer(status int, kind string, b []byte) {
	h := v.w.Header()
	h.Set("Content-Type", kind)
	if len(b) < minZipped || !acceptsGzip(v.r) {
		h.Set("Content-Length", strconv.Itoa(len(b)))
		v.w.WriteHeader(status)
		v.w.Write(b) // who does not read the answer has gone; of a HEAD, net/http drops it
		return
	}
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	var out bytes.Buffer
	z.Reset(&out)
	z.Write(b) // into memory
	z.Close()
	h.Set("Content-Encoding", "gzip")
	h.Set("Content-Length", strconv.Itoa(out.Len()))
	v.w.WriteHeader(status)
	v.w.Write(out.Bytes())
}

func acceptsGzip(r *http.Request) bool {
	for _, part := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) == "gzip" {
			return strings.ReplaceAll(q, " ", "") != "q=0"
		}
	}
	return false
}

// plain answers with a page in both languages that needs no database.
func (v *visit) plain(status int, name string) {
	type text struct{ Lang, Title, Lead, Body, Style any }
	var both []text
	for _, lang := range []string{v.lang, map[string]string{look.English: look.French}[v.lang]} {
		if lang == "" {
			lang = look.English
		}
		t := catalogues[lang].T
		both = append(both, text{lang, t(name + ".title"), t(name + ".lead"), t(name + ".body"), Style()})
	}
	var b bytes.Buffer
	if err := templates["plain"].ExecuteTemplate(&b, "plain", both); err != nil {
		http.Error(v.w, http.StatusText(status), status)
		return
	}
	v.answer(status, "text/html; charset=utf-8", b.Bytes())
}

// redirect sends the browser to a page of ours, after a POST too.
func (v *visit) redirect(path string) error {
	v.w.Header().Set("Location", path)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// detached returns a context for work that goes on when the browser has gone: an ask that was
// begun is finished.
func (v *visit) detached() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(v.r.Context()), viewTimeout)
}
