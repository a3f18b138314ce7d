package conform

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // of till dev, for what takes days otherwise
)

// pages is how a customer reads pages: nothing is followed, as a POST ends on a page of the service.
var pages = &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

var (
	formField = regexp.MustCompile(`name="form" value="([^"]+)"`)
	wayBack   = regexp.MustCompile(`href="[^"]*\?([^"]*till_checkout=[^"]+)"`)
)

// formRest is how old a form must be at least: who posts what they have not read is a program.
const formRest = 1100 * time.Millisecond

// readPage reads a page, past the proxy and the SDK.
func readPage(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	res, err := pages.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", address, res.Status)
	}
	return string(text), err
}

// payOn asks for money on a page, as its customer does with a number; without one, the shop
// has named it. It returns the page to which that led.
func payOn(ctx context.Context, address, phone string) (string, error) {
	text, err := readPage(ctx, address)
	if err != nil {
		return "", err
	}
	form := formField.FindStringSubmatch(text)
	if form == nil {
		return "", fmt.Errorf("%s has no form", address)
	}
	if err := pause(ctx, formRest); err != nil {
		return "", err
	}
	body := url.Values{"form": {html.UnescapeString(form[1])}}
	if phone != "" {
		body.Set("phone", "+"+phone)
		body.Set("sure", phone) // the number was looked at
	} else {
		body.Set("sure", "shop")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := pages.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		return "", fmt.Errorf("POST %s: %s", address, res.Status)
	}
	to, err := res.Location()
	if err != nil {
		return "", err
	}
	return to.String(), nil
}

// pageOf returns the newest checkout of an order.
func (b *books) pageOf(ctx context.Context, order string) (*payment, error) {
	return b.newest(ctx, "checkouts", order)
}

// pay is a customer on the page of an order.
func (p *play) pay(ctx context.Context, s *Step) error {
	var c *payment
	err := eventually(ctx, patience, func() (err error) {
		if c, err = p.books.pageOf(ctx, s.Order); err == nil && c == nil {
			err = fmt.Errorf("no checkout of %s", s.Order)
		}
		return err
	})
	if err != nil {
		return err
	}
	to, err := payOn(ctx, c.URL, s.Phone)
	if err == nil && !strings.HasPrefix(to, c.URL+"/") {
		err = fmt.Errorf("it led to %s and not to an ask", to)
	}
	if err == nil || !s.InTime {
		return err
	}
	early := eventually(ctx, 5*time.Second, func() error { // the page knows it before the checkout does
		now, err := p.books.pageOf(ctx, s.Order)
		if err == nil && now.State != "paid" {
			err = fmt.Errorf("%s is %s", s.Order, now.State)
		}
		return err
	})
	if early == nil {
		err = errors.Join(errTooLate, err)
	}
	return err
}

// errTooLate says that money came before the customer, on a machine that was busy. Then the
// scenario is played once more: it says nothing about the shop.
var errTooLate = errors.New("the late money came before the customer")

// comeBack gives the driver the way back that the page of an order leads to, as it is or with
// another state.
func (p *play) comeBack(ctx context.Context, s *Step) error {
	c, err := p.books.pageOf(ctx, s.Order)
	if err != nil || c == nil {
		return fmt.Errorf("no checkout of %s: %w", s.Order, err)
	}
	text, err := readPage(ctx, c.URL)
	if err != nil {
		return err
	}
	found := wayBack.FindStringSubmatch(text)
	if found == nil {
		return fmt.Errorf("%s leads back to no shop", c.URL)
	}
	query := html.UnescapeString(found[1])
	switch s.Change {
	case "state":
		query = strings.Replace(query, "till_state=paid", "till_state=closed", 1)
	case "checkout":
		query = strings.Replace(query, c.ID, c.PaymentID, 1)
	case "unsigned":
		query = query[:strings.Index(query, "&till_signature=")]
	}
	result, err := p.driver.do(ctx, map[string]any{"do": "come_back", "order": s.Order, "query": query})
	if err != nil {
		return err
	}
	return compare(s, result)
}

// checkoutElsewhere makes a checkout past the SDK, as somebody else does.
func (p *play) checkoutElsewhere(ctx context.Context, s *Step) error {
	body := map[string]any{"amount": map[string]any{"value": defaults["value"], "currency": defaults["currency"]}, "reference": s.Order, "idempotency_key": uuid()}
	return p.books.call(ctx, http.MethodPost, "/checkouts", body, nil)
}

// runOut lets the time of an order's page be over, for which the shortest is minutes.
func (p *play) runOut(ctx context.Context, s *Step) error {
	c, err := p.books.pageOf(ctx, s.Order)
	if err != nil || c == nil {
		return fmt.Errorf("no checkout of %s: %w", s.Order, err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(p.service.data, "till.db")+"?_pragma=busy_timeout(20000)&_txlock=immediate")
	if err != nil {
		return err
	}
	return errors.Join(moveEnd(ctx, db, path.Base(c.URL)), db.Close())
}

// moveEnd moves the end of a page into the past. The database holds that it never moves, so
// the trigger that does steps aside for the commit.
func moveEnd(ctx context.Context, db *sql.DB, token string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var name, holds string
	if err := tx.QueryRowContext(ctx, "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'checkouts' AND sql LIKE '%a fixed column changed%'").Scan(&name, &holds); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "DROP TRIGGER "+name); err != nil {
		return err
	}
	res, err := tx.ExecContext(ctx, "UPDATE checkouts SET expires_at = created_at + 1 WHERE lower(token) = lower(?)", token)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d checkouts have the page %s: %w", n, token, err)
	}
	if _, err := tx.ExecContext(ctx, holds); err != nil {
		return err
	}
	return tx.Commit()
}

// samePage holds that an order's page stays where it is, until the scenario says otherwise.
func (p *play) samePage(order string, result map[string]any, moved bool) error {
	at, _ := result["url"].(string)
	if at == "" {
		return nil
	}
	was, known := p.pages[order]
	if known && (was != at) != moved {
		return fmt.Errorf("the page of %s is %s and was %s", order, at, was)
	}
	p.pages[order] = at
	return nil
}

// payAll is the customers of many orders, each on the page that the service's books have.
func (p *play) payAll(ctx context.Context, checkouts []payment) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	places := make(chan struct{}, customers)
	for _, c := range checkouts {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			err := eventually(ctx, patience, func() error { _, err := payOn(ctx, c.URL, ""); return err })
			if err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// customers is how many are on pages at a time. Most of their time is reading.
const customers = 16
