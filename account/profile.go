package account

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"till"
	"till/store"
)

// Limits of a profile.
const (
	maxProfileName  = 100
	maxReceiptText  = 500 // characters of the head, and of the foot
	maxReceiptLines = 10
)

// Profile returns how a client is shown to people.
func (a *Accounts) Profile(ctx context.Context, client till.ID) (p *till.Profile, err error) {
	err = a.store.View(ctx, func(tx *store.Tx) error {
		p, err = tx.Profile(ctx, client)
		return err
	})
	return p, err
}

// SetProfile changes how a client is shown to people. It returns
// CodeClientNotFound, or CodeValidationFailed with the fields that are wrong.
func (a *Accounts) SetProfile(ctx context.Context, p *till.Profile, actor string) error {
	if fields := CheckProfile(p); len(fields) > 0 {
		return invalid(fields...)
	}
	return a.commit(ctx, func(tx *store.Tx) error {
		return a.audited(ctx, tx, p.ClientID, actor, func(at till.Time) (auditEntry, error) {
			return auditEntry{action: "client.profile", detail: "zone " + p.Zone + ", country " + p.Country}, tx.SaveProfile(ctx, p, at)
		})
	}, func(tx *store.Tx) (bool, error) {
		saved, err := tx.Profile(ctx, p.ClientID)
		if err == nil {
			saved.PayName = p.PayName // it is not changed here
		}
		return err == nil && *saved == *p, err
	})
}

// CheckProfile returns what is wrong with a profile.
func CheckProfile(p *till.Profile) []till.FieldError {
	var fields []till.FieldError
	wrong := func(pointer, detail string) {
		fields = append(fields, till.FieldError{Pointer: pointer, Code: till.FieldInvalidFormat, Detail: detail})
	}
	if p.Name != "" {
		fields = append(fields, checkName("/name", p.Name, maxProfileName)...)
	}
	if _, err := time.LoadLocation(p.Zone); err != nil || p.Zone == "" || p.Zone == "Local" {
		wrong("/zone", "The zone must be a name such as Africa/Brazzaville.")
	}
	if _, ok := till.CountryOf(p.Country); p.Country != "" && !ok {
		wrong("/country", "The country must be an ISO 3166-1 code such as CG.")
	}
	if p.Language != "" && p.Language != "en" && p.Language != "fr" {
		wrong("/language", "The language must be en or fr.")
	}
	for pointer, text := range map[string]string{"/receipt_head": p.ReceiptHead, "/receipt_foot": p.ReceiptFoot} {
		if !plainLines(text) {
			wrong(pointer, "The text has at most "+strconv.Itoa(maxReceiptLines)+" lines and "+strconv.Itoa(maxReceiptText)+" characters.")
		}
	}
	return fields
}

// plainLines reports whether a text is a few lines of printable characters.
func plainLines(text string) bool {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > maxReceiptText || strings.Count(text, "\n") >= maxReceiptLines {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}
