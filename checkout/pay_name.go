package checkout

import (
	"context"
	"crypto/sha256"
	"strconv"
	"strings"

	"till"
	"till/store"
	"till/store/access"
	"till/store/checkouts"
)

// NameOnPages returns the name that pages show: the one that was confirmed, else the client's
// own; "" if the rules let neither be shown.
func NameOnPages(own, confirmed string) string {
	for _, name := range []string{confirmed, own} {
		if name != "" && CheckName(name) == "" {
			return name
		}
	}
	return ""
}

// What acts about names are called in the audit log.
const (
	ActNameAsked     = "client.pay_name"
	ActNameConfirmed = "client.pay_name_confirmed"
)

// NameTwin is the rule that a name breaks which a hurried reader takes for that of another live
// client.
const NameTwin NameRule = "twin"

// NameError says which rule a name breaks.
type NameError struct{ Rule NameRule }

func (e *NameError) Error() string { return "the name " + e.Rule.Words() }

// AskName asks for the name that a client's pages show. Those of a test client show it at once; a
// live client's show the old one until the house has confirmed the new one. "" takes back what
// was asked for, and gives a test client its own name again. It returns NameError and
// CodeClientNotFound.
func AskName(ctx context.Context, s *store.Store, client till.ID, name, actor string) error {
	name = tidy(name)
	return changeName(ctx, s, client, actor, func(ctx context.Context, tx *store.Tx, c *till.Client, n *checkouts.PayName) (act, detail string, err error) {
		if name != "" {
			if err := mayBeNamed(ctx, tx, c, name); err != nil {
				return "", "", err
			}
		}
		switch {
		case c.Mode != till.Live:
			if n.Shown == name {
				return "", "", nil
			}
			n.Shown = name
		case name == n.Asked, name == NameOnPages(c.Name, n.Shown) && n.Asked == "":
			return "", "", nil
		default:
			if name == NameOnPages(c.Name, n.Shown) { // it is shown: nothing waits any more
				name = ""
			}
			n.Asked, n.AskedAt, n.AskedBy = name, tx.Now(), actor
			if name == "" {
				n.AskedAt, n.AskedBy = 0, ""
			}
		}
		return ActNameAsked, "name on pages: " + strconv.Quote(name), nil
	})
}

// ConfirmName lets a client's pages show the name that was asked for. The house names what it
// has read: if something else is asked for by now, nothing changes. It returns NameError,
// CodeValidationFailed and CodeClientNotFound.
func ConfirmName(ctx context.Context, s *store.Store, client till.ID, name, actor string) error {
	return changeName(ctx, s, client, actor, func(ctx context.Context, tx *store.Tx, c *till.Client, n *checkouts.PayName) (act, detail string, err error) {
		switch {
		case name != "" && n.Shown == name && n.Asked == "": // a second run
			return "", "", nil
		case name == "" || n.Asked != name:
			return "", "", till.Errorf(till.CodeValidationFailed, "this is not the name that waits: it may have changed since you read it")
		}
		if err := mayBeNamed(ctx, tx, c, name); err != nil {
			return "", "", err
		}
		n.Shown, n.Asked, n.AskedAt, n.AskedBy = name, "", 0, ""
		return ActNameConfirmed, "name on pages: " + strconv.Quote(name), nil
	})
}

// SetName is AskName and ConfirmName in one, for the house; "" gives the client its own name
// again.
func SetName(ctx context.Context, s *store.Store, client till.ID, name, actor string) error {
	name = tidy(name)
	return changeName(ctx, s, client, actor, func(ctx context.Context, tx *store.Tx, c *till.Client, n *checkouts.PayName) (act, detail string, err error) {
		if n.Shown == name && n.Asked == "" {
			return "", "", nil
		}
		if name != "" {
			if err := mayBeNamed(ctx, tx, c, name); err != nil {
				return "", "", err
			}
		}
		n.Shown, n.Asked, n.AskedAt, n.AskedBy = name, "", 0, ""
		return ActNameConfirmed, "name on pages: " + strconv.Quote(name), nil
	})
}

// changeName changes a client's name on pages, with its audit row, under the lock of its head.
// change returns no act if nothing is another than before.
func changeName(ctx context.Context, s *store.Store, client till.ID, actor string,
	change func(ctx context.Context, tx *store.Tx, c *till.Client, n *checkouts.PayName) (act, detail string, err error)) error {
	_, err := store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, _ bool) error {
		c, err := tx.Client(ctx, client)
		if err != nil {
			return err
		}
		heads, err := tx.LockHeads(ctx, []till.ID{client})
		if err != nil {
			return err
		}
		n, err := checkouts.ReadPayName(ctx, tx, client)
		if err != nil {
			return err
		}
		act, detail, err := change(ctx, tx, c, &n)
		if err != nil || act == "" {
			return err
		}
		head := heads[client]
		at := head.NextTime()
		if err := checkouts.SavePayName(ctx, tx, n, at); err != nil {
			return err
		}
		if err := tx.InsertAudit(ctx, []*store.AuditRow{{ClientID: client, Sequence: head.NextAudit(), At: at, Actor: actor, Action: act, SubjectID: client, Detail: detail}}); err != nil {
			return err
		}
		return tx.SaveHeads(ctx, heads)
	})
	return err
}

// tidy returns a name as it was meant: without spaces around it, and with one between words.
func tidy(name string) string { return strings.Join(strings.Fields(name), " ") }

// comparedNames is the name of the count that a comparison of names locks: of two that ask for
// the same name at once, one comes second.
var comparedNames = sha256.Sum256([]byte("names on pages to pay on"))

// mayBeNamed refuses a name that breaks a rule, and for a live client one that looks as another
// live client's.
func mayBeNamed(ctx context.Context, tx *store.Tx, c *till.Client, name string) error {
	if rule := CheckName(name); rule != "" {
		return &NameError{rule}
	}
	if c.Mode != till.Live {
		return nil
	}
	if _, err := access.LockGuesses(ctx, tx, comparedNames, tx.Now()); err != nil {
		return err
	}
	wanted, live := Skeleton(name), map[till.ID]bool{}
	for after := (till.ID{}); ; {
		page, err := tx.Clients(ctx, after, namesPage)
		if err != nil {
			return err
		}
		for _, other := range page {
			after = other.ID
			if other.Mode != till.Live || other.ID == c.ID {
				continue
			}
			if live[other.ID] = true; Skeleton(other.Name) == wanted {
				return &NameError{NameTwin}
			}
		}
		if len(page) < namesPage {
			break
		}
	}
	for after := (till.ID{}); ; {
		page, err := checkouts.PayNames(ctx, tx, after, namesPage)
		if err != nil {
			return err
		}
		for _, other := range page {
			if after = other.Client; live[other.Client] && Skeleton(other.Shown) == wanted {
				return &NameError{NameTwin}
			}
		}
		if len(page) < namesPage {
			return nil
		}
	}
}

// namesPage is how many names are compared at once.
const namesPage = 500
