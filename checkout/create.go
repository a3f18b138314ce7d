package checkout

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"till"
	"till/internal/request"
	"till/store"
	"till/store/checkouts"
)

// Created is the result of Create.
type Created struct {
	View
	Asks     []till.Ask
	Secret   string // what the way back is signed with
	Replayed bool
}

// Create makes a checkout, in one commit. It returns CodeValidationFailed with all mistakes of
// the body, CodeKeyReused if the key belongs to another body, CodePagesNotAvailable if nobody
// could open it, and CodeServiceUnavailable while an older release may run, or if the database
// is unavailable.
func (s *Checkouts) Create(ctx context.Context, who Client, r *Request) (Created, error) {
	var v request.Validator
	o := r.check(&v)
	request.CheckReturnURL(&v, r.ReturnURL, who.Mode != till.Test, s.c.Hosts)
	if len(v.Fields) > 0 {
		return Created{}, v.Refusal()
	}
	sum, ok := r.hash(bodyVersion)
	if !ok {
		return Created{}, fmt.Errorf("hash the body of a create call")
	}
	row := &checkouts.Row{BodyHash: sum, BodyVersion: bodyVersion, Checkout: till.Checkout{
		ClientID: who.ID, IdempotencyKey: o.SentKey, Token: NewToken(), State: till.CheckoutOpen,
		Amount: till.Money{Minor: o.Amount, Currency: o.Currency}, Reference: request.TextOf(r.Reference), Country: request.TextOf(r.Country),
		Phone: request.TextOf(r.Phone), PhoneFixed: r.PhoneFixed != nil && *r.PhoneFixed, ReturnURL: request.TextOf(r.ReturnURL), Language: request.TextOf(r.Language),
		Document: r.order().OrderDocument(),
	}}
	if r.Methods != nil {
		row.Methods = *r.Methods
	}
	refusal := s.refusal(who, r, row)
	var out Created
	_, err := store.RetryUnknown(ctx, s.c.Store.Update, func(tx *store.Tx, again bool) (err error) {
		out, err = s.insert(ctx, tx, who, r, o.Key, row, refusal)
		out.Replayed = out.Replayed && !(again && out.Checkout != nil && out.Checkout.Token == row.Token)
		return err
	})
	if err != nil {
		return Created{}, s.unavailable("checkout not created", err)
	}
	s.known.Store(who.ID, true)
	out.Secret = s.keys.ReturnSecret(who.ID, out.Checkout.ID)
	return out, nil
}

// insert writes a checkout, or finds the one that its key made.
func (s *Checkouts) insert(ctx context.Context, tx *store.Tx, who Client, r *Request, key till.ID, row *checkouts.Row, refusal error) (out Created, err error) {
	heads, suspended, err := tx.LockMakers(ctx, []till.ID{who.ID})
	if err != nil {
		return out, err
	}
	head := heads[who.ID]
	if head == nil {
		return out, till.Errorf(till.CodeClientNotFound, "there is no such client")
	}
	out.Now = tx.Now()
	made, err := checkouts.OfKey(ctx, tx, who.ID, key)
	if err != nil {
		return out, err
	}
	if made != nil {
		sum, known := s.rows.BodyHash(r.hash, made.BodyVersion)
		if !known {
			return out, till.Errorf(till.CodeServiceUnavailable, "a newer release made this checkout; try again with the same key")
		}
		if sum != made.BodyHash {
			return out, till.Errorf(till.CodeKeyReused, "the key belongs to a checkout that was made with another body")
		}
		out.Checkout, out.Replayed = &made.Checkout, true
		out.Asks, err = checkouts.Asks(ctx, tx, made.Ref())
		return out, err
	}
	if suspended[who.ID] {
		return out, &till.Error{Code: till.CodeClientSuspended}
	}
	if refusal != nil {
		return out, refusal
	}
	out.Checkout = &row.Checkout
	if err := s.place(ctx, tx, who, head, row, r.life()); err != nil {
		return out, err
	}
	if who.Actor != "" { // a person's act has a row in the audit log; that of a key is the checkout itself
		if err := audit(ctx, tx, head, row, who.Actor, "checkout.create"); err != nil {
			return out, err
		}
	}
	return out, tx.SaveHeads(ctx, heads)
}

// place writes a new checkout, which can be paid for so long.
func (s *Checkouts) place(ctx context.Context, tx *store.Tx, who Client, head *store.Head, row *checkouts.Row, life time.Duration) error {
	if err := mayShow(ctx, tx, who); err != nil {
		return err
	}
	if err := mayWrite(ctx, tx, "Checkouts"); err != nil {
		return err
	}
	at := head.NextTime()
	row.ID, row.CreatedAt, row.UpdatedAt = till.NewID(at), at, at
	row.ExpiresAt = max(tx.Now(), at).Add(life)
	if err := checkouts.Insert(ctx, tx, head, row); err != nil {
		return err
	}
	return countStored(ctx, tx, who, at, len(row.Document))
}

// mayWrite refuses what an older release that may run does not know.
func mayWrite(ctx context.Context, tx *store.Tx, what string) error {
	may, err := checkouts.MayWrite(ctx, tx)
	if err == nil && !may {
		err = &till.Error{Code: till.CodeServiceUnavailable, Told: true,
			Detail: what + " are not taken yet: the level of this service has not been raised since its upgrade. Try again later with the same key."}
	}
	return err
}

// audit notes who did what to a checkout.
func audit(ctx context.Context, tx *store.Tx, head *store.Head, row *checkouts.Row, actor, action string) error {
	return tx.InsertAudit(ctx, []*store.AuditRow{{ClientID: row.ClientID, Sequence: head.NextAudit(), At: row.UpdatedAt, Actor: actor, Action: action,
		SubjectID: row.ID, Detail: "checkout of " + row.Amount.Value() + " " + row.Amount.Currency, Cause: store.CauseOf(ctx)}})
}

// storedRow is about how many bytes a checkout, or a link, takes beside its document.
const storedRow = 1 << 10

// countStored counts what a test client made us keep.
func countStored(ctx context.Context, tx *store.Tx, who Client, at till.Time, document int) error {
	if who.Mode != till.Test {
		return nil
	}
	var counts store.CounterDelta
	counts.AddStored(who.ID, at, storedRow+int64(document))
	return tx.AddCounts(ctx, &counts)
}

// refusal applies the rules that can change from one day to the next, of which a checkout that
// was made before hears nothing.
func (s *Checkouts) refusal(who Client, r *Request, row *checkouts.Row) error {
	v := request.Validator{}
	checkMethods(&v, who, row.Methods)
	if len(v.Fields) == 0 {
		s.checkMarkets(&v, who, &row.Checkout)
	}
	v.Fields = append(v.Fields, r.Unknown...)
	if len(v.Fields) > 0 {
		return v.Refusal()
	}
	return s.barred(who)
}

func checkMethods(v *request.Validator, who Client, methods []string) {
	for i, m := range methods {
		if _, known := till.MethodOf(m); !known || !who.Enabled(m) {
			v.Add("/methods/"+strconv.Itoa(i), till.FieldUnknownMethod, "is not one of the methods enabled for you; see GET /payment-methods")
		}
	}
}

// barred says why nothing that is paid on a page can be made for a client.
func (s *Checkouts) barred(who Client) error {
	switch {
	case who.Full != nil:
		return who.Full
	case s.c.PageURL == "":
		return &till.Error{Code: till.CodePagesNotAvailable, Told: true, Detail: "This service has no pages to pay on. The house that runs it can open them."}
	}
	return nil
}

// checkMarkets refuses what no method could take.
func (s *Checkouts) checkMarkets(v *request.Validator, who Client, row *till.Checkout) {
	all := s.markets(who, row, true)
	if len(all) == 0 {
		if row.Country != "" {
			v.Add("/country", till.FieldCountryNotSupported, "is not a country in which one of your methods takes this currency")
			return
		}
		v.Add("/amount/currency", till.FieldCurrencyNotSupported, "is not a currency that one of your methods takes")
		return
	}
	if len(s.markets(who, row, false)) == 0 {
		request.CheckBounds(v, all[0].Market, row.Amount.Minor)
		return
	}
	if row.Phone == "" {
		return
	}
	hint := ""
	for _, m := range all {
		country, _ := till.CountryOf(m.Market.Country)
		ok, why := m.Method.CheckPhone(country, row.Phone)
		if ok {
			return
		}
		if _, its := till.CountryByCallingCode(row.Phone, []string{country.Code}); its || hint == "" {
			hint = why
		}
	}
	v.Add("/phone", till.FieldInvalidPhone, hint)
}

// Market is a way to pay a checkout: a method in a country.
type Market struct {
	Method *till.Method
	Market *till.Market
}

// OnPage reports whether pages can ask by a market: the customer is asked on the phone.
func OnPage(k *till.Market) bool { return k.Flow == till.FlowPush }

// Markets returns the ways to pay a checkout that its client has, however healthy operators are.
func (s *Checkouts) Markets(who Client, c *till.Checkout) []Market { return s.markets(who, c, false) }

// Bounds is what a client's methods take of one currency: the least and the most of any of them.
type Bounds struct {
	Currency string
	Min, Max int64
}

// Bounds returns what the client's methods take, in the order of the catalogue.
func (s *Checkouts) Bounds(who Client) (out []Bounds) {
	for _, m := range till.Methods() {
		if !who.Enabled(m.Code) {
			continue
		}
		offer := s.c.Collector.Offer(who.Client, m)
		for i := range m.Markets {
			k := &offer.Markets[i].Market
			if !OnPage(k) || !offer.Served[i] {
				continue
			}
			at := slices.IndexFunc(out, func(b Bounds) bool { return b.Currency == k.Currency })
			if at < 0 {
				out = append(out, Bounds{k.Currency, k.Min, k.Max})
				continue
			}
			out[at].Min, out[at].Max = min(out[at].Min, k.Min), max(out[at].Max, k.Max)
		}
	}
	return out
}

// markets is Markets, with or without those whose bounds the amount is outside of.
func (s *Checkouts) markets(who Client, c *till.Checkout, anyAmount bool) (out []Market) {
	for _, m := range till.Methods() {
		if !who.Enabled(m.Code) || len(c.Methods) > 0 && !slices.Contains(c.Methods, m.Code) {
			continue
		}
		offer := s.c.Collector.Offer(who.Client, m)
		for i := range m.Markets {
			k := &offer.Markets[i].Market
			fits := c.Amount.Minor >= k.Min && c.Amount.Minor <= k.Max && c.Amount.Minor%k.Step == 0
			if OnPage(k) && k.Currency == c.Amount.Currency && (c.Country == "" || c.Country == k.Country) && (fits || anyAmount) && offer.Served[i] {
				out = append(out, Market{m, k})
			}
		}
	}
	return out
}
