package admin

import (
	"context"
	"fmt"

	"till"
	"till/internal/db"
	"till/store"
)

// SealedKind is a column of sealed bytes.
type SealedKind string

// The columns of sealed bytes.
const (
	SealedSecrets      SealedKind = "webhook secrets"
	SealedOldSecrets   SealedKind = "replaced webhook secrets"
	SealedTokens       SealedKind = "operators' tokens"
	SealedStrays       SealedKind = "strays"
	SealedTOTP         SealedKind = "authenticator secrets"
	SealedCertificates SealedKind = "certificates"
)

// sealedColumn is a column of sealed bytes. The key of its rows has one or two columns.
type sealedColumn struct {
	kind               SealedKind
	pair               bool // the key has two columns
	text               bool // the key is text; otherwise ids
	find, write, count *db.SQL
}

// defineSealed defines the statements of a column. second is "" if the key has one column.
func defineSealed(kind SealedKind, name, table, column, first, second string, text bool) sealedColumn {
	c := sealedColumn{kind: kind, text: text, pair: second != ""}
	find := fmt.Sprintf(`SELECT %[1]s, %[1]s, %[2]s FROM %[3]s WHERE length(%[2]s) > 0 AND substr(%[2]s, 1, 1) <> $1 AND %[1]s > $2
		ORDER BY %[1]s LIMIT $3`, first, column, table)
	write := fmt.Sprintf(`UPDATE %[3]s SET %[2]s = $1 WHERE %[1]s = $2 AND %[2]s = $3`, first, column, table)
	if c.pair {
		find = fmt.Sprintf(`SELECT %[1]s, %[2]s, %[3]s FROM %[4]s WHERE length(%[3]s) > 0 AND substr(%[3]s, 1, 1) <> $1
		AND (%[1]s > $2 OR %[1]s = $3 AND %[2]s > $4) ORDER BY %[1]s, %[2]s LIMIT $5`, first, second, column, table)
		write = fmt.Sprintf(`UPDATE %[4]s SET %[3]s = $1 WHERE %[1]s = $2 AND %[2]s = $3 AND %[3]s = $4`, first, second, column, table)
	}
	c.find = db.Define(db.SQL{Name: "sealed.find" + name, SQLite: find})
	c.write = db.Define(db.SQL{Name: "sealed.write" + name, SQLite: write})
	c.count = db.Define(db.SQL{Name: "sealed.count" + name,
		SQLite: fmt.Sprintf(`SELECT substr(%[1]s, 1, 1), count(*) FROM %[2]s WHERE length(%[1]s) > 0 GROUP BY substr(%[1]s, 1, 1)`, column, table)})
	return c
}

// sealedColumns lists each column of the database that holds sealed bytes.
var sealedColumns = []sealedColumn{
	defineSealed(SealedSecrets, "Secrets", "webhook_endpoints", "secret", "client_id", "id", false),
	defineSealed(SealedOldSecrets, "OldSecrets", "webhook_endpoints", "old_secret", "client_id", "id", false),
	defineSealed(SealedTokens, "Tokens", "operator_tokens", "sealed", "connection", "name", true),
	defineSealed(SealedStrays, "Strays", "strays", "sealed", "id", "", false),
	defineSealed(SealedTOTP, "TOTP", "people", "totp", "person_id", "", false),
	defineSealed(SealedCertificates, "Certificates", "certificates", "sealed", "name", "", true),
}

// SealedKinds returns all columns of sealed bytes.
func SealedKinds() (out []SealedKind) {
	for _, c := range sealedColumns {
		out = append(out, c.kind)
	}
	return out
}

// SealedKey is the key of a row with sealed bytes. An id is the string of its bytes. Second
// is First if the key has one column.
type SealedKey struct{ First, Second string }

// IDs returns a key that is ids.
func (k SealedKey) IDs() (first, second till.ID) {
	copy(first[:], k.First)
	copy(second[:], k.Second)
	return first, second
}

// Sealed is a sealed value and the key of its row.
type Sealed struct {
	Key   SealedKey
	Bytes []byte
}

func columnOf(kind SealedKind) *sealedColumn {
	for i := range sealedColumns {
		if sealedColumns[i].kind == kind {
			return &sealedColumns[i]
		}
	}
	panic("store: no column of " + string(kind))
}

func (c *sealedColumn) arg(part string) any {
	if c.text {
		return part
	}
	return []byte(part)
}

// SealedByOthers returns up to limit values of a column that another generation sealed,
// after a key, in order.
func SealedByOthers(ctx context.Context, tx *store.Tx, kind SealedKind, generation int, after SealedKey, limit int) (out []Sealed, err error) {
	c := columnOf(kind)
	args := []any{[]byte{byte(generation)}, c.arg(after.First), limit}
	if c.pair {
		args = []any{args[0], args[1], args[1], c.arg(after.Second), limit}
	}
	err = tx.DB().Query(ctx, c.find, args, func(r db.Row) error {
		var s Sealed
		var first, second []byte
		if c.text {
			err := r.Scan(&s.Key.First, &s.Key.Second, &s.Bytes)
			out = append(out, s)
			return err
		}
		err := r.Scan(&first, &second, &s.Bytes)
		s.Key = SealedKey{string(first), string(second)}
		out = append(out, s)
		return err
	})
	return out, err
}

// WriteSealed replaces a sealed value, if it is still the one that was read.
func WriteSealed(ctx context.Context, tx *store.Tx, kind SealedKind, s *Sealed, again []byte) (bool, error) {
	c := columnOf(kind)
	args := []any{again, c.arg(s.Key.First), s.Bytes}
	if c.pair {
		args = []any{again, c.arg(s.Key.First), c.arg(s.Key.Second), s.Bytes}
	}
	n, err := tx.DB().Exec(ctx, c.write, args...)
	return n == 1, err
}

// CountSealed counts sealed values by column and generation.
func CountSealed(ctx context.Context, tx *store.Tx) (map[SealedKind]map[int]int64, error) {
	out := map[SealedKind]map[int]int64{}
	for _, c := range sealedColumns {
		by := map[int]int64{}
		err := tx.DB().Query(ctx, c.count, nil, func(r db.Row) error {
			var first []byte
			var n int64
			err := r.Scan(&first, &n)
			if len(first) == 1 {
				by[int(first[0])] = n
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		out[c.kind] = by
	}
	return out, nil
}
