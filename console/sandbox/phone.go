package sandbox

import (
	"context"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/console/words"
	"till/internal/qrcode"
	"till/provider/sandbox"
	"till/store"
)

// phoneLife is how long the link to a handset works.
const phoneLife = 24 * time.Hour

// phonePlace is what the tokens of handsets are sealed for.
var phonePlace = []byte("handset")

// Phone are the pages of a handset on a second device. Nobody signs in
// there: the token names one test merchant and one number, and opens no other.
var Phone = []shell.Route{
	{Method: http.MethodGet, Path: "/{token}", Handle: in((*visit).phone)},
	{Method: http.MethodPost, Path: "/{token}/answer", Handle: in((*visit).answerOnPhone)},
	{Method: http.MethodPost, Path: "/{token}/handset", Handle: in((*visit).setPhone)},
}

// phoneToken returns what opens the handset of a number: merchant, end, market
// and number, sealed.
func (v *visit) phoneToken(t *table) string {
	text := strings.Join([]string{v.Client.ID.String(), strconv.FormatInt(int64(v.Now.Add(phoneLife)), 10), t.market.Key(), t.phone}, " ")
	return base64.RawURLEncoding.EncodeToString(v.Console.Phones.Seal([]byte(text), phonePlace))
}

// openPhone reads the token of the path and enters its merchant. What is no token
// of this installation, or is a live merchant's, is not there.
func (v *visit) openPhone() (*table, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(v.R.PathValue("token"))
	if err != nil {
		return nil, shell.ErrNoPage
	}
	text, err := v.Console.Phones.Open(sealed, phonePlace)
	if err != nil {
		return nil, shell.ErrNoPage
	}
	part := strings.Split(string(text), " ")
	if len(part) != 4 {
		return nil, shell.ErrNoPage
	}
	client, err := till.ParseID(part[0])
	if err != nil {
		return nil, shell.ErrNoPage
	}
	ends, err := strconv.ParseInt(part[1], 10, 64)
	if err != nil {
		return nil, shell.ErrNoPage
	}
	if till.Time(ends) <= v.Now {
		return nil, shell.ErrPhoneOver
	}
	if err := v.enterPhone(client); err != nil {
		return nil, err
	}
	t := &table{phone: part[3]}
	markets := sandboxMarkets()
	i := slices.IndexFunc(markets, func(m subject.Market) bool { return m.Key() == part[2] })
	if i < 0 {
		return nil, shell.ErrNoPage
	}
	if t.market = markets[i]; !t.fits(t.phone) {
		return nil, shell.ErrNoPage
	}
	return t, nil
}

// enterPhone reads the merchant of a token.
func (v *visit) enterPhone(client till.ID) error {
	var c *till.Client
	err := v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		if c, err = tx.Client(ctx, client); err != nil {
			return err
		}
		v.Profile, err = tx.Profile(ctx, client)
		return err
	})
	if till.ErrorCode(err) == till.CodeClientNotFound || err == nil && c.Mode != till.Test {
		return shell.ErrNoPage
	}
	v.Client = c
	if err == nil {
		v.Clock = look.NewClock(v.Words.Lang(), v.Profile.Zone)
	}
	return err
}

// phonePage is the handset alone.
type phonePage struct {
	*shell.Frame
	Again   string
	PIN     string // the right one
	Handset *handset
	Story   *sandbox.Story // none
}

// phone is GET /phone/{token}. Looking at it holds the number.
func (v *visit) phone() error {
	t, err := v.openPhone()
	if err != nil {
		return err
	}
	p := &phonePage{PIN: sandbox.PIN, Frame: v.Frame(v.Words.T("sandbox.handset"), ""), Again: v.phonePath("")}
	p.Name, p.Test, p.NoKeys = v.ClientName(), true, true
	h, err := v.showHandset(t)
	if err != nil {
		return err
	}
	p.Handset = h
	h.Answer, h.Set = v.phonePath("/answer"), v.phonePath("/handset")
	return v.Page("phone", p)
}

// phonePath returns an address of this handset, in the language that was chosen.
func (v *visit) phonePath(rest string) string {
	path := shell.PhonePrefix + "/" + v.R.PathValue("token") + rest
	if l := v.R.URL.Query().Get("lang"); slices.Contains(words.Languages, l) {
		path += "?lang=" + l
	}
	return path
}

// answerOnPhone is POST /phone/{token}/answer.
func (v *visit) answerOnPhone() error {
	t, err := v.openPhone()
	if err != nil {
		return err
	}
	if err := v.checkPrompt(t); err != nil {
		return err
	}
	if err := v.answerForm(); err != nil {
		return err
	}
	return v.Redirect(v.phonePath(""))
}

// checkPrompt refuses a prompt that is not on the handset of the link: the token opens
// one number.
func (v *visit) checkPrompt(t *table) error {
	h, err := v.Console.Sandbox.Handset(v.R.Context(), v.Client.ID, t.phone, t.market.Currency)
	if err != nil {
		return err
	}
	asked := v.R.PostFormValue("payment")
	if !slices.ContainsFunc(h.Prompts, func(p sandbox.Prompt) bool { return p.Payment.String() == asked }) {
		return v.Stop(v.Redirect(v.phonePath(""))) // it has ended, or was never here: the screen says which there are
	}
	return nil
}

// setPhone is POST /phone/{token}/handset.
func (v *visit) setPhone() error {
	t, err := v.openPhone()
	if err != nil {
		return err
	}
	if err := v.stateForm(t); err != nil {
		return err
	}
	return v.Redirect(v.phonePath(""))
}

// ownPhonePage shows the link to the handset, and its QR code.
type ownPhonePage struct {
	*shell.Frame
	Link  string
	QR    template.HTML
	Back  string
	Whole string
	Local bool // other devices do not reach the address
}

// ownPhone is GET /c/{client}/sandbox/phone.
func (v *visit) ownPhone() error {
	t := v.readTable(v.R.URL.Query())
	t.story = nil
	p := &ownPhonePage{Frame: v.Frame(v.Words.T("sandbox.own_phone"), "menu.sandbox"), Back: v.tableAddress(t), Whole: look.Phone(t.phone)}
	origin := v.Console.Site
	if v.Console.PhoneOrigin != "" {
		origin = v.Console.PhoneOrigin
	}
	p.Link = origin + shell.PhonePrefix + "/" + v.phoneToken(t)
	if u, err := url.Parse(origin); err == nil {
		a, err := netip.ParseAddr(u.Hostname())
		p.Local = u.Hostname() == "localhost" || err == nil && (a.IsLoopback() || a.IsUnspecified())
	}
	svg, err := qrcode.SVG(p.Link, v.Words.T("sandbox.own_phone"))
	if err != nil {
		return err
	}
	p.QR = template.HTML(svg)
	v.Plain = true
	return v.Page("own_phone", p)
}
