package lookup

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"till"
	"till/internal/db"
	"till/internal/seal"
	"till/store"
)

// Payments have no index by phone: each create would pay for it. phone_index has 8 bytes of an HMAC
// of each phone under a key of the installation's secret, and is filled behind the commits, in the
// order of ids; a cursor per client says how far. Two numbers may have one mark, so who finds a
// row compares its phone. What is younger than the cursor is found by a scan of bounded length. With
// another secret the marks are useless: empty phone_index and phone_cursors, and they fill again.

var selectClientsToIndex = db.Define(db.SQL{Name: "phones.selectClients",
	SQLite: `SELECT h.client_id FROM client_heads h LEFT JOIN phone_cursors c ON c.client_id = h.client_id
		WHERE h.client_id > $1 AND h.last_event > coalesce(c.log_end, 0) ORDER BY h.client_id LIMIT $2`})

var selectPhoneCursor = db.Define(db.SQL{Name: "phones.selectCursor",
	SQLite: `SELECT payment, payout, log_end FROM phone_cursors WHERE client_id = $1`})

var savePhoneCursor = db.Define(db.SQL{Name: "phones.saveCursor",
	SQLite: `INSERT INTO phone_cursors (client_id, payment, payout, log_end) VALUES ($1, $2, $3, $4)
		ON CONFLICT (client_id) DO UPDATE SET payment = excluded.payment, payout = excluded.payout, log_end = excluded.log_end`})

var selectPaymentPhones = db.Define(db.SQL{Name: "phones.selectPayments",
	SQLite: `SELECT id, phone FROM payments WHERE client_id = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4`})

var selectPayoutPhones = db.Define(db.SQL{Name: "phones.selectPayouts",
	SQLite: `SELECT id, phone FROM payouts WHERE client_id = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4`})

var insertPhones = db.Define(db.SQL{Name: "phones.insert",
	SQLite: `INSERT INTO phone_index (client_id, mark, payout, id) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
	Postgres: `INSERT INTO phone_index (client_id, mark, payout, id)
		SELECT u.a1, u.a2, u.a3, u.a4 FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::bytea[]) AS a4 LIMIT $5::bigint) AS u
		ON CONFLICT DO NOTHING`,
	Arrays: true})

var selectByPhone = db.Define(db.SQL{Name: "phones.select",
	SQLite: `SELECT client_id, id FROM phone_index WHERE client_id = $1 AND mark = $2 AND payout = $3 ORDER BY id DESC LIMIT $4`})

var selectByPhoneOfAll = db.Define(db.SQL{Name: "phones.selectOfAll",
	SQLite: `SELECT p.client_id, p.id FROM clients c CROSS JOIN phone_index p WHERE p.client_id = c.client_id AND p.mark = $1 AND p.payout = $2 ORDER BY p.id DESC LIMIT $3`,
	Postgres: `SELECT f.client_id, f.id FROM clients c, LATERAL (SELECT p.client_id, p.id FROM phone_index p
			WHERE p.client_id = c.client_id AND p.mark = $1 AND p.payout = $2 ORDER BY p.id DESC LIMIT $3) AS f ORDER BY f.id DESC LIMIT $3`})

var selectByPhoneAfter = db.Define(db.SQL{Name: "phones.selectAfter",
	SQLite: `SELECT client_id, id FROM phone_index WHERE client_id = $1 AND mark = $2 AND payout = $3 AND id > $4 AND id <= $5 ORDER BY id LIMIT $6`})

// PhoneKey is the key that phones and words are marked with in their indexes.
type PhoneKey []byte

// phoneLabel separates this key from other keys that are derived from the
// installation's secret.
const phoneLabel = "till phone index v1"

// NewPhoneKey returns the key of an installation's index of phones.
func NewPhoneKey(secret []byte) (PhoneKey, error) {
	key, err := seal.Key(secret, phoneLabel)
	if err != nil {
		return nil, fmt.Errorf("phone index: %w", err)
	}
	return key, nil
}

// Mark returns what the index has of a phone. Two phones may have one mark.
func (k PhoneKey) Mark(phone string) int64 {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(phone))
	return int64(binary.BigEndian.Uint64(mac.Sum(nil)))
}

// Cursor is how far an index is filled for a client.
type Cursor struct {
	Payment, Payout till.ID // the last ones that are in it
	LogEnd          int64   // the client's events when nothing was left to do
}

// PhoneRow is a payment or payout with its phone.
type PhoneRow struct {
	ID    till.ID
	Phone string
}

// ClientsToIndex returns up to limit clients, after one of them, whose index of
// phones may not be filled.
func ClientsToIndex(ctx context.Context, tx *store.Tx, after till.ID, limit int) ([]till.ID, error) {
	return db.ReadAll(ctx, tx.DB(), selectClientsToIndex, []any{after[:], limit}, func(r db.Row) (id till.ID, err error) {
		err = r.Scan(db.ID(&id))
		return id, err
	})
}

// ReadPhoneCursor returns how far a client's index is filled.
func ReadPhoneCursor(ctx context.Context, tx *store.Tx, client till.ID) (c Cursor, err error) {
	_, err = tx.DB().QueryRow(ctx, selectPhoneCursor, []any{client[:]}, db.ID(&c.Payment), db.ID(&c.Payout), &c.LogEnd)
	return c, err
}

// SavePhoneCursor writes how far a client's index is filled.
func SavePhoneCursor(ctx context.Context, tx *store.Tx, client till.ID, c Cursor) error {
	_, err := tx.DB().Exec(ctx, savePhoneCursor, client[:], c.Payment[:], c.Payout[:], c.LogEnd)
	return err
}

// PhonesAfter returns up to limit payments, or payouts, of a client between two ids,
// by id, with their phones.
func PhonesAfter(ctx context.Context, tx *store.Tx, client till.ID, payouts bool, after, before till.ID, limit int) ([]PhoneRow, error) {
	q := selectPaymentPhones
	if payouts {
		q = selectPayoutPhones
	}
	return db.ReadAll(ctx, tx.DB(), q, []any{client[:], after[:], before[:], limit}, func(r db.Row) (row PhoneRow, err error) {
		err = r.Scan(db.ID(&row.ID), &row.Phone)
		return row, err
	})
}

// InsertPhones adds payments, or payouts, to the index.
func InsertPhones(tx *store.Tx, client till.ID, key PhoneKey, payouts bool, rows []PhoneRow) error {
	kind := int64(0)
	if payouts {
		kind = 1
	}
	args := make([][]any, len(rows))
	for i := range rows {
		args[i] = []any{client[:], key.Mark(rows[i].Phone), kind, rows[i].ID[:]}
	}
	return tx.DB().Defer(insertPhones, args)
}

// RefsByPhone returns up to limit payments, or payouts, that the index has under a
// mark, newest first: of one client, or of all if it is till.House. Their phones are
// yet to be compared.
func RefsByPhone(ctx context.Context, tx *store.Tx, client till.ID, mark int64, payouts bool, limit int) ([]store.Ref, error) {
	kind := int64(0)
	if payouts {
		kind = 1
	}
	if client == till.House {
		return readRefs(ctx, tx, selectByPhoneOfAll, mark, kind, limit)
	}
	return readRefs(ctx, tx, selectByPhone, client[:], mark, kind, limit)
}

// RefsByPhoneAfter returns up to limit payments, or payouts, of a client that the index
// has under a mark, by id: after one id, up to another. Their phones are yet to be
// compared.
func RefsByPhoneAfter(ctx context.Context, tx *store.Tx, client till.ID, mark int64, payouts bool, after, last till.ID, limit int) ([]store.Ref, error) {
	kind := int64(0)
	if payouts {
		kind = 1
	}
	return readRefs(ctx, tx, selectByPhoneAfter, client[:], mark, kind, after[:], last[:], limit)
}

func readRefs(ctx context.Context, tx *store.Tx, q *db.SQL, args ...any) ([]store.Ref, error) {
	return db.ReadAll(ctx, tx.DB(), q, args, func(r db.Row) (ref store.Ref, err error) {
		err = r.Scan(db.ID(&ref.Client), db.ID(&ref.ID))
		return ref, err
	})
}
