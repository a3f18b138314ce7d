package checkout

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"till"
	"till/internal/request"
	"till/store"
	"till/store/checkouts"
)

// CreatedLink is the result of CreateLink.
type CreatedLink struct {
	Link     *till.Link
	Replayed bool
}

// CreateLink makes a link, in one commit. It has a key, though no money depends on it: a call whose
// answer was lost makes no second poster. A repeated call is answered with the link as it is by
// now, because what it was like is not kept. It returns CodeValidationFailed with all mistakes of the body,
// CodeKeyReused if the key belongs to another body, CodePagesNotAvailable if nobody could open
// it, and CodeServiceUnavailable while an older release may run, or if the database is
// unavailable.
func (s *Checkouts) CreateLink(ctx context.Context, who Client, r *LinkRequest) (CreatedLink, error) {
	var v request.Validator
	l, key := r.check(&v)
	request.CheckReturnURL(&v, r.ReturnURL, who.Mode != till.Test, s.c.Hosts)
	if len(v.Fields) > 0 {
		return CreatedLink{}, v.Refusal()
	}
	sum, ok := r.hash(linkBodyVersion)
	if !ok {
		return CreatedLink{}, fmt.Errorf("hash the body of a create call")
	}
	row := &checkouts.LinkRow{Link: l, BodyHash: sum, BodyVersion: linkBodyVersion}
	row.ClientID, row.Token, row.Active = who.ID, NewToken(), true
	refusal := s.refusalOfLink(who, r, &row.Link)
	var out CreatedLink
	_, err := store.RetryUnknown(ctx, s.c.Store.Update, func(tx *store.Tx, again bool) (err error) {
		out, err = s.insertLink(ctx, tx, who, r, key, row, refusal)
		out.Replayed = out.Replayed && !(again && out.Link != nil && out.Link.Token == row.Token)
		return err
	})
	if err != nil {
		return CreatedLink{}, s.unavailable("link not created", err)
	}
	return out, nil
}

// insertLink writes a link, or finds the one that its key made.
func (s *Checkouts) insertLink(ctx context.Context, tx *store.Tx, who Client, r *LinkRequest, key till.ID, row *checkouts.LinkRow, refusal error) (out CreatedLink, err error) {
	heads, suspended, err := tx.LockMakers(ctx, []till.ID{who.ID})
	if err != nil {
		return out, err
	}
	head := heads[who.ID]
	if head == nil {
		return out, till.Errorf(till.CodeClientNotFound, "there is no such client")
	}
	made, err := checkouts.LinkOfKey(ctx, tx, who.ID, key)
	if err != nil {
		return out, err
	}
	if made != nil {
		switch sum, known := r.hash(made.BodyVersion); {
		case !known:
			return out, till.Errorf(till.CodeServiceUnavailable, "a newer release made this link; try again with the same key")
		case sum != made.BodyHash:
			return out, till.Errorf(till.CodeKeyReused, "the key belongs to a link that was made with another body")
		}
		return CreatedLink{Link: &made.Link, Replayed: true}, nil
	}
	if suspended[who.ID] {
		return out, &till.Error{Code: till.CodeClientSuspended}
	}
	if refusal != nil {
		return out, refusal
	}
	var v request.Validator
	if checkEnd(&v, row.ExpiresAt, tx.Now()); len(v.Fields) > 0 {
		return out, v.Refusal()
	}
	if err := mayShow(ctx, tx, who); err != nil {
		return out, err
	}
	if err := mayWrite(ctx, tx, "Links"); err != nil {
		return out, err
	}
	at := head.NextTime()
	row.ID, row.CreatedAt, row.UpdatedAt = till.NewID(at), at, at
	out.Link = &row.Link
	if err := checkouts.InsertLink(ctx, tx, row); err != nil {
		return out, err
	}
	if err := countStored(ctx, tx, who, at, len(row.Document)); err != nil {
		return out, err
	}
	if err := auditLink(ctx, tx, head, &row.Link, who.Actor, "link.create", "link "+strconv.Quote(row.Title)); err != nil {
		return out, err
	}
	return out, tx.SaveHeads(ctx, heads)
}

func auditLink(ctx context.Context, tx *store.Tx, head *store.Head, l *till.Link, actor, action, detail string) error {
	return tx.InsertAudit(ctx, []*store.AuditRow{{ClientID: l.ClientID, Sequence: head.NextAudit(), At: l.UpdatedAt, Actor: actor, Action: action,
		SubjectID: l.ID, Detail: detail, Cause: store.CauseOf(ctx)}})
}

// refusalOfLink is refusal for a link.
func (s *Checkouts) refusalOfLink(who Client, r *LinkRequest, l *till.Link) error {
	v := request.Validator{}
	checkMethods(&v, who, l.Methods)
	if len(v.Fields) == 0 {
		s.checkLinkMarkets(&v, who, l)
	}
	v.Fields = append(v.Fields, r.Unknown...)
	if len(v.Fields) > 0 {
		return v.Refusal()
	}
	return s.barred(who)
}

// checkLinkMarkets refuses what no method could take.
func (s *Checkouts) checkLinkMarkets(v *request.Validator, who Client, l *till.Link) {
	if !l.Open() {
		s.checkMarkets(v, who, &till.Checkout{Amount: l.Amount, Country: l.Country, Methods: l.Methods})
		return
	}
	all := s.LinkMarkets(who, l)
	if len(all) == 0 {
		if any := *l; l.Min > 0 || l.Max > 0 {
			if any.Min, any.Max = 0, 0; len(s.LinkMarkets(who, &any)) > 0 {
				v.Add("/open_amount/min", till.FieldAmountOutOfBounds, "must leave amounts that one of your methods takes")
				return
			}
		}
		if l.Country != "" {
			v.Add("/country", till.FieldCountryNotSupported, "is not a country in which one of your methods takes this currency")
			return
		}
		v.Add("/open_amount/currency", till.FieldCurrencyNotSupported, "is not a currency that one of your methods takes")
		return
	}
	for i, n := range l.Suggested {
		taken := false
		for _, m := range all {
			taken = taken || n >= m.Market.Min && n <= m.Market.Max && n%m.Market.Step == 0
		}
		if !taken {
			v.Add("/open_amount/suggested/"+strconv.Itoa(i), till.FieldAmountOutOfBounds, "is an amount that none of your methods takes")
		}
	}
}

// LinkMarkets returns the ways to pay on a link that its client has for some amount.
func (s *Checkouts) LinkMarkets(who Client, l *till.Link) (out []Market) {
	for _, m := range s.markets(who, &till.Checkout{Amount: l.Amount, Country: l.Country, Methods: l.Methods}, l.Open()) {
		if l.Open() && (l.Min > m.Market.Max || l.Max > 0 && l.Max < m.Market.Min) {
			continue
		}
		out = append(out, m)
	}
	return out
}

// LinkURL returns the address of a link's page, "" if there are no pages.
func (s *Checkouts) LinkURL(l *till.Link) string {
	if s.c.PageURL == "" {
		return ""
	}
	return s.c.PageURL + "/p/" + l.Token
}

// Link returns a link of a client. It returns CodeLinkNotFound if the client has no such.
func (s *Checkouts) Link(ctx context.Context, ref store.Ref) (l *till.Link, err error) {
	err = s.c.Store.View(ctx, func(tx *store.Tx) error {
		row, err := checkouts.GetLink(ctx, tx, ref)
		if err == nil {
			l = &row.Link
		}
		return err
	})
	return l, s.unavailable("link not read", err)
}

// Links returns a page of a client's links, and how many there are on all pages.
func (s *Checkouts) Links(ctx context.Context, client till.ID, f checkouts.LinkFilter, page store.Page) (all []*till.Link, total int64, err error) {
	err = s.c.Store.View(ctx, func(tx *store.Tx) error {
		rows, n, err := checkouts.ListLinks(ctx, tx, client, f, page)
		all, total = make([]*till.Link, len(rows)), n
		for i, row := range rows {
			all[i] = &row.Link
		}
		return err
	})
	return all, total, s.unavailable("links not read", err)
}

// LinkChange is what may change of a link. What is nil stays.
type LinkChange struct {
	Active    *bool
	Title     *string
	ExpiresAt *till.Time // zero: it never ends
}

// ChangeLink changes a link. Checkouts that it has opened stay as they are: who has begun to
// pay may go on. It returns CodeLinkNotFound and CodeValidationFailed.
func (s *Checkouts) ChangeLink(ctx context.Context, ref store.Ref, change LinkChange, actor string) (l *till.Link, err error) {
	_, err = store.RetryUnknown(ctx, s.c.Store.Update, func(tx *store.Tx, _ bool) error {
		heads, err := tx.LockHeads(ctx, []till.ID{ref.Client})
		if err != nil {
			return err
		}
		row, err := checkouts.GetLink(ctx, tx, ref)
		if err != nil {
			return err
		}
		l = &row.Link
		said, err := change.apply(l, tx.Now())
		if err != nil || said == "" {
			return err
		}
		head := heads[ref.Client]
		l.UpdatedAt = head.NextTime()
		if err := checkouts.SaveLink(ctx, tx, row); err != nil {
			return err
		}
		if err := auditLink(ctx, tx, head, l, actor, "link.change", said); err != nil {
			return err
		}
		return tx.SaveHeads(ctx, heads)
	})
	return l, s.unavailable("link not changed", err)
}

// apply changes a link and says how, "" if nothing is another than before.
func (c *LinkChange) apply(l *till.Link, now till.Time) (said string, err error) {
	var v request.Validator
	var all []string
	if c.Title != nil && *c.Title != l.Title {
		l.Title = checkLabel(&v, "/title", c.Title, till.MaxLinkTitle)
		all = append(all, "title "+strconv.Quote(l.Title))
	}
	if c.ExpiresAt != nil && *c.ExpiresAt != l.ExpiresAt {
		checkEnd(&v, *c.ExpiresAt, now)
		if l.ExpiresAt = *c.ExpiresAt; l.ExpiresAt.IsZero() {
			all = append(all, "without an end")
		} else {
			all = append(all, "ends "+l.ExpiresAt.String())
		}
	}
	if c.Active != nil && *c.Active != l.Active {
		l.Active = *c.Active
		all = append(all, map[bool]string{true: "switched on", false: "switched off"}[l.Active])
	}
	if len(v.Fields) > 0 {
		return "", v.Refusal()
	}
	return strings.Join(all, ", "), nil
}
