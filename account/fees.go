package account

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"till"
	"till/store"
)

// Fees returns the client's schedule of fees, which never changes.
func (s *Session) Fees() []till.Fee { return s.fees }

// Fees returns a client's schedule. It returns CodeClientNotFound.
func (a *Accounts) Fees(ctx context.Context, client till.ID) (out []till.Fee, err error) {
	err = a.store.View(ctx, func(tx *store.Tx) error {
		if _, err := tx.Client(ctx, client); err != nil {
			return err
		}
		out, err = tx.ClientFees(ctx, client)
		return err
	})
	return out, err
}

// SetFee sets the fee of a client's new payments or payouts by a method in a currency.
// Existing ones keep the fee that they were created with. It returns CodeClientNotFound, or
// CodeValidationFailed for an impossible fee.
func (a *Accounts) SetFee(ctx context.Context, client till.ID, f till.Fee, actor string) error {
	fields := append(checkFeeTarget(f), checkFee(f)...)
	if len(fields) > 0 {
		return invalid(fields...)
	}
	detail := string(f.Kind) + " " + f.Method + " " + f.Currency + ": " + strconv.FormatInt(f.Flat, 10) + " and " + strconv.FormatInt(f.BasisPoints, 10) + " basis points"
	defer a.cache.forget(client)
	return a.commit(ctx, func(tx *store.Tx) error {
		return a.audited(ctx, tx, client, actor, func(till.Time) (auditEntry, error) {
			return auditEntry{action: "fee.set", detail: detail}, tx.SetClientFee(ctx, client, f)
		})
	}, func(*store.Tx) (bool, error) { return false, nil }) // repeating it is harmless
}

// RemoveFee removes a kind, method and currency from a client's schedule; if it is not
// there, nothing changes. It returns CodeClientNotFound, or CodeValidationFailed for what
// no schedule can contain.
func (a *Accounts) RemoveFee(ctx context.Context, client till.ID, f till.Fee, actor string) error {
	if fields := checkFeeTarget(f); len(fields) > 0 {
		return invalid(fields...)
	}
	defer a.cache.forget(client)
	return a.commit(ctx, func(tx *store.Tx) error {
		return a.audited(ctx, tx, client, actor, func(till.Time) (auditEntry, error) {
			removed, err := tx.RemoveClientFee(ctx, client, f)
			if err != nil || !removed {
				return auditEntry{}, err
			}
			return auditEntry{action: "fee.remove", detail: string(f.Kind) + " " + f.Method + " " + f.Currency}, nil
		})
	}, func(*store.Tx) (bool, error) { return false, nil }) // repeating it is harmless
}

// checkFeeTarget returns the mistakes in a fee's kind, method and currency.
func checkFeeTarget(f till.Fee) []till.FieldError {
	var fields []till.FieldError
	if !f.Kind.Valid() {
		fields = append(fields, till.FieldError{Pointer: "/kind", Code: till.FieldInvalidFormat, Detail: "The kind is payment or payout."})
	}
	m, ok := till.MethodOf(f.Method)
	if !ok {
		return append(fields, unknownMethod())
	}
	var currencies []string
	for _, k := range m.Markets {
		if k.Currency == f.Currency {
			return fields
		}
		if !slices.Contains(currencies, k.Currency) {
			currencies = append(currencies, k.Currency)
		}
	}
	return append(fields, till.FieldError{Pointer: "/currency", Code: till.FieldCurrencyNotSupported,
		Detail: "The method is not served in this currency; it is in " + strings.Join(currencies, ", ") + "."})
}

func checkFee(f till.Fee) []till.FieldError {
	var fields []till.FieldError
	if f.Flat < 0 || f.Flat > till.MaxMinor {
		fields = append(fields, till.FieldError{Pointer: "/flat", Code: till.FieldInvalidFormat,
			Detail: "The flat part is from 0 to " + strconv.FormatInt(till.MaxMinor, 10) + " minor units."})
	}
	if f.BasisPoints < 0 || f.BasisPoints > till.MaxBasisPoints {
		fields = append(fields, till.FieldError{Pointer: "/bps", Code: till.FieldInvalidFormat,
			Detail: "The part is from 0 to " + strconv.Itoa(till.MaxBasisPoints) + " basis points."})
	}
	if f.Flat == 0 && f.BasisPoints == 0 {
		fields = append(fields, till.FieldError{Pointer: "/flat", Code: till.FieldRequired, Detail: "A fee of nothing is no fee: remove it instead."})
	}
	return fields
}
