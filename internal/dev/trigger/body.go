package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"till/internal/dev/remote"
)

// maxDepth bounds how deep a member may be set.
const maxDepth = 8

// Set puts a value into a body: "reference=ORDER-7" is a text, "metadata.cart:=88" is JSON.
func Set(body map[string]any, assignment string) error {
	path, text, ok := strings.Cut(assignment, "=")
	if !ok || path == "" {
		return fmt.Errorf("%q sets nothing: as reference=ORDER-7, or metadata.cart:=88 for JSON", assignment)
	}
	var value any = text
	if member, isJSON := strings.CutSuffix(path, ":"); isJSON {
		path = member
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber() // no digit is lost
		if err := d.Decode(&value); err != nil || d.More() {
			return fmt.Errorf("%q: what follows := is not JSON", assignment)
		}
	}
	names := strings.Split(path, ".")
	if len(names) > maxDepth || slices.Contains(names, "") {
		return fmt.Errorf("%q names no member", assignment)
	}
	for _, name := range names[:len(names)-1] {
		next, ok := body[name].(map[string]any)
		if body[name] != nil && !ok {
			return fmt.Errorf("%q: %s is no object", assignment, name)
		}
		if !ok {
			next = map[string]any{}
			body[name] = next
		}
		body = next
	}
	body[names[len(names)-1]] = value
	return nil
}

// method is a line of GET /payment-methods.
type method struct {
	Code      string `json:"code"`
	Window    int    `json:"approval_window_seconds"`
	Countries []struct {
		Code     string `json:"code"`
		Currency string `json:"currency"`
		Phone    struct {
			Example string `json:"example"`
		} `json:"phone"`
		Min      string `json:"min_amount"`
		Supports struct {
			Payments bool `json:"payments"`
			Payouts  bool `json:"payouts"`
		} `json:"supports"`
	} `json:"countries"`
}

// preferred is the method and country that is taken if nobody says another.
const (
	preferredMethod  = "mtn_momo"
	preferredCountry = "CG"
	usualAmount      = "5000"
)

// market is where a story is played.
type market struct {
	method, country, currency, phone string
	window                           int // seconds that a customer has
}

// chooseMarket finds a market for a subject, among those that the body allows.
func chooseMarket(ctx context.Context, c *remote.Client, subject string, body map[string]any) (market, error) {
	var list struct {
		Items []method `json:"items"`
	}
	if err := c.Get(ctx, "/payment-methods", 0, &list); err != nil {
		return market{}, err
	}
	wantMethod, _ := body["method"].(string)
	wantCountry, _ := body["country"].(string)
	var found []market
	for _, m := range list.Items {
		for _, k := range m.Countries {
			if subject != "payout" && !k.Supports.Payments || subject == "payout" && !k.Supports.Payouts || len(k.Phone.Example) < 8 ||
				wantMethod != "" && wantMethod != m.Code || wantCountry != "" && wantCountry != k.Code {
				continue
			}
			at := market{m.Code, k.Code, k.Currency, k.Phone.Example, m.Window}
			if m.Code == preferredMethod && k.Code == preferredCountry {
				return at, nil
			}
			found = append(found, at)
		}
	}
	if len(found) == 0 {
		return market{}, errors.New("the client has no such method and country for a " + subject + ": GET /payment-methods lists them")
	}
	return found[0], nil
}

// complete puts into a body what it lacks: everything that a story needs.
func complete(body map[string]any, s Story, at market, key, reference string) error {
	phone := at.phone
	if s.EndsIn != "" {
		phone = phone[:len(phone)-len(s.EndsIn)] + s.EndsIn
	}
	person := map[string]string{"payment": "customer", "payout": "recipient", "refund": "customer"}[s.Subject]
	for _, d := range [][2]string{
		{"method", at.method}, {"country", at.country}, {"amount.value", usualAmount}, {"amount.currency", at.currency},
		{person + ".phone", phone}, {"reference", reference}, {"idempotency_key", key},
	} {
		if has(body, d[0]) {
			continue
		}
		if err := Set(body, d[0]+"="+d[1]); err != nil {
			return err
		}
	}
	return nil
}

func has(body map[string]any, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	value, ok := body[name]
	if !ok || !deeper {
		return ok
	}
	next, ok := value.(map[string]any)
	return !ok || has(next, rest)
}
