package lookup

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"

	"till"
	"till/internal/db"
	"till/store"
)

// word_index is as phone_index: marks under a key of the installation's secret, filled behind the commits in the
// order of ids, up to a cursor per client. A mark of a word begins alike for words that begin alike, so
// a beginning is a range of marks. Whatever is found is compared with the row.

var selectClientsToWord = db.Define(db.SQL{Name: "words.selectClients",
	SQLite: `SELECT h.client_id FROM client_heads h LEFT JOIN word_cursors c ON c.client_id = h.client_id
		WHERE h.client_id > $1 AND h.last_event > coalesce(c.log_end, 0) ORDER BY h.client_id LIMIT $2`})

var selectWordCursor = db.Define(db.SQL{Name: "words.selectCursor",
	SQLite: `SELECT payment, payout, log_end FROM word_cursors WHERE client_id = $1`})

var lockWordCursor = db.Define(db.SQL{Name: "words.lockCursor",
	SQLite: `INSERT INTO word_cursors (client_id, payment, payout, log_end) VALUES ($1, $2, $3, 0)
		ON CONFLICT (client_id) DO UPDATE SET log_end = word_cursors.log_end`})

var saveWordCursor = db.Define(db.SQL{Name: "words.saveCursor",
	SQLite: `UPDATE word_cursors SET payment = $1, payout = $2, log_end = $3 WHERE client_id = $4`})

const wordColumns = `p.client_id, p.id, p.phone, p.reference, p.provider_reference, p.amount, p.currency, p.document`

// By the noun: rows between two ids in their order, the newest rows of a client, and of all.
var selectWordRows, selectNewest, selectNewestOfAll, selectBetween, selectBetweenOfAll = map[bool]*db.SQL{}, map[bool]*db.SQL{}, map[bool]*db.SQL{}, map[bool]*db.SQL{}, map[bool]*db.SQL{}

func init() {
	for payouts, table := range map[bool]string{false: "payments", true: "payouts"} {
		selectWordRows[payouts] = db.Define(db.SQL{Name: "words." + table,
			SQLite: `SELECT ` + wordColumns + ` FROM ` + table + ` p WHERE p.client_id = $1 AND p.id > $2 AND p.id < $3 ORDER BY p.id LIMIT $4`})
		selectNewest[payouts] = db.Define(db.SQL{Name: "words.newest." + table,
			SQLite: `SELECT ` + wordColumns + ` FROM ` + table + ` p WHERE p.client_id = $1 AND p.id >= $2 AND p.id < $3 ORDER BY p.id DESC LIMIT $4`})
		selectNewestOfAll[payouts] = db.Define(db.SQL{Name: "words.newestOfAll." + table,
			SQLite: `SELECT ` + wordColumns + ` FROM clients c CROSS JOIN ` + table + ` p WHERE p.client_id = c.client_id AND p.id >= $1 LIMIT $2`,
			Postgres: `SELECT f.* FROM clients c, LATERAL (SELECT ` + wordColumns + ` FROM ` + table + ` p
				WHERE p.client_id = c.client_id AND p.id >= $1 ORDER BY p.id DESC LIMIT $2) AS f LIMIT $2`})
		selectBetween[payouts] = db.Define(db.SQL{Name: "words.between." + table,
			SQLite: `SELECT client_id, id FROM ` + table + ` WHERE client_id = $1 AND id BETWEEN $2 AND $3 ORDER BY id DESC LIMIT $4`})
		selectBetweenOfAll[payouts] = db.Define(db.SQL{Name: "words.betweenOfAll." + table,
			SQLite: `SELECT p.client_id, p.id FROM clients c CROSS JOIN ` + table + ` p WHERE p.client_id = c.client_id AND p.id BETWEEN $1 AND $2 LIMIT $3`,
			Postgres: `SELECT f.client_id, f.id FROM clients c, LATERAL (SELECT p.client_id, p.id FROM ` + table + ` p
				WHERE p.client_id = c.client_id AND p.id BETWEEN $1 AND $2 ORDER BY p.id DESC LIMIT $3) AS f LIMIT $3`})
	}
}

var insertWords = db.Define(db.SQL{Name: "words.insert",
	SQLite: `INSERT INTO word_index (client_id, mark, payout, id) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
	Postgres: `INSERT INTO word_index (client_id, mark, payout, id)
		SELECT u.a1, u.a2, u.a3, u.a4 FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::bytea[]) AS a4 LIMIT $5::bigint) AS u
		ON CONFLICT DO NOTHING`,
	Arrays: true})

var forgetWord = db.Define(db.SQL{Name: "words.forget",
	SQLite: `DELETE FROM word_index WHERE client_id = $1 AND mark = $2 AND payout = $3 AND id = $4`})

var selectByMark = db.Define(db.SQL{Name: "words.select",
	SQLite: `SELECT client_id, id FROM word_index WHERE client_id = $1 AND mark = $2 AND payout = $3 ORDER BY id DESC LIMIT $4`})

var selectByMarkOfAll = db.Define(db.SQL{Name: "words.selectOfAll",
	SQLite: `SELECT p.client_id, p.id FROM clients c CROSS JOIN word_index p WHERE p.client_id = c.client_id AND p.mark = $1 AND p.payout = $2 ORDER BY p.id DESC LIMIT $3`,
	Postgres: `SELECT f.client_id, f.id FROM clients c, LATERAL (SELECT p.client_id, p.id FROM word_index p
			WHERE p.client_id = c.client_id AND p.mark = $1 AND p.payout = $2 ORDER BY p.id DESC LIMIT $3) AS f ORDER BY f.id DESC LIMIT $3`})

var selectByMarks = db.Define(db.SQL{Name: "words.selectRange",
	SQLite: `SELECT r.client_id, r.id FROM (SELECT client_id, id FROM word_index
		WHERE client_id = $1 AND mark BETWEEN $2 AND $3 AND payout = $4 LIMIT $5) AS r ORDER BY r.id DESC LIMIT $6`})

var selectByMarksOfAll = db.Define(db.SQL{Name: "words.selectRangeOfAll",
	SQLite: `SELECT r.client_id, r.id FROM (SELECT p.client_id, p.id FROM clients c CROSS JOIN word_index p
		WHERE p.client_id = c.client_id AND p.mark BETWEEN $1 AND $2 AND p.payout = $3 LIMIT $4) AS r ORDER BY r.id DESC LIMIT $5`,
	Postgres: `SELECT f.client_id, f.id FROM clients c, LATERAL (SELECT p.client_id, p.id FROM word_index p
			WHERE p.client_id = c.client_id AND p.mark BETWEEN $1 AND $2 AND p.payout = $3 LIMIT $4) AS f ORDER BY f.id DESC LIMIT $5`})

// WordRow is a payment or payout with what it is found by.
type WordRow struct {
	store.Ref
	Phone, Reference, Receipt string
	Amount                    till.Money
	Document                  []byte
}

// The kinds of marks.
const (
	wordKind   = 'w' // a word, or the rest of a reference
	phoneKind  = 'p' // a phone, from its last digit on
	amountKind = 'a'
)

// How many bits of a mark stand for how many characters of its word; the other 16 for all of it.
var markParts = []struct{ runes, bits int }{{3, 20}, {4, 12}, {5, 8}, {6, 8}}

const wholeBits = 16

func (k PhoneKey) part(kind byte, text string, bits int) uint64 {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte{kind})
	mac.Write([]byte(text))
	return binary.BigEndian.Uint64(mac.Sum(nil)) >> (64 - bits)
}

// wordMark returns what the index has of a word.
func (k PhoneKey) wordMark(kind byte, word string) int64 {
	runes, mark := []rune(word), uint64(0)
	for _, p := range markParts {
		mark = mark<<p.bits | k.part(kind, string(runes[:min(p.runes, len(runes))]), p.bits)
	}
	return int64(mark<<wholeBits | k.part(kind, word+"\n", wholeBits))
}

// wordRange returns the first and the last mark of words that begin with a text of at least
// minPart characters.
func (k PhoneKey) wordRange(kind byte, beginning string) (from, to int64) {
	runes, mark, left := []rune(beginning), uint64(0), 64
	for _, p := range markParts {
		if len(runes) < p.runes {
			break
		}
		mark, left = mark<<p.bits|k.part(kind, string(runes[:p.runes]), p.bits), left-p.bits
	}
	mark <<= left
	return int64(mark), int64(mark | (1<<left - 1))
}

// amountMark returns what the index has of an amount.
func (k PhoneKey) amountMark(m till.Money) int64 {
	return int64(k.part(amountKind, strconv.FormatInt(m.Minor, 10)+m.Currency, 64))
}

// marks returns all that a row is found by.
func (k PhoneKey) marks(r *WordRow) []int64 {
	out := []int64{k.amountMark(r.Amount)}
	for _, w := range wordsOf(r) {
		out = append(out, k.wordMark(wordKind, w))
	}
	if strings.Trim(r.Phone, "0123456789") == "" { // not an erased one
		out = append(out, k.wordMark(phoneKind, reversed(r.Phone)))
	}
	return out
}

func kindOf(payouts bool) int64 {
	if payouts {
		return 1
	}
	return 0
}

// ClientsToWord returns up to limit clients, after one of them, whose index of words may not be
// filled.
func ClientsToWord(ctx context.Context, tx *store.Tx, after till.ID, limit int) ([]till.ID, error) {
	return db.ReadAll(ctx, tx.DB(), selectClientsToWord, []any{after[:], limit}, func(r db.Row) (id till.ID, err error) {
		err = r.Scan(db.ID(&id))
		return id, err
	})
}

// LockWords lets nobody else change a client's index of words in this transaction: who fills it
// and who erases from it would otherwise not see each other's rows.
func LockWords(ctx context.Context, tx *store.Tx, client till.ID) error {
	var none till.ID
	_, err := tx.DB().Exec(ctx, lockWordCursor, client[:], none[:], none[:])
	return err
}

// ReadWordCursor returns how far a client's index of words is filled.
func ReadWordCursor(ctx context.Context, tx *store.Tx, client till.ID) (c Cursor, err error) {
	_, err = tx.DB().QueryRow(ctx, selectWordCursor, []any{client[:]}, db.ID(&c.Payment), db.ID(&c.Payout), &c.LogEnd)
	return c, err
}

// SaveWordCursor writes how far a client's index of words is filled. LockWords made its row.
func SaveWordCursor(ctx context.Context, tx *store.Tx, client till.ID, c Cursor) error {
	_, err := tx.DB().Exec(ctx, saveWordCursor, c.Payment[:], c.Payout[:], c.LogEnd, client[:])
	return err
}

// WordsAfter returns up to limit payments, or payouts, of a client between two ids, by id.
func WordsAfter(ctx context.Context, tx *store.Tx, client till.ID, payouts bool, after, before till.ID, limit int) (out []*WordRow, err error) {
	err = tx.DB().Query(ctx, selectWordRows[payouts], []any{client[:], after[:], before[:], limit}, func(r db.Row) error {
		row, err := scanWordRow(r)
		out = append(out, row)
		return err
	})
	return out, err
}

func scanWordRow(r db.Row) (*WordRow, error) {
	row := &WordRow{}
	return row, r.Scan(db.ID(&row.Client), db.ID(&row.ID), &row.Phone, db.Text(&row.Reference), db.Text(&row.Receipt), &row.Amount.Minor, &row.Amount.Currency, &row.Document)
}

// InsertWords adds payments, or payouts, to the index of words.
func InsertWords(tx *store.Tx, key PhoneKey, payouts bool, rows []*WordRow) error {
	var args [][]any
	for _, r := range rows {
		for _, mark := range key.marks(r) {
			args = append(args, []any{r.Client[:], mark, kindOf(payouts), r.ID[:]})
		}
	}
	return tx.DB().Defer(insertWords, args)
}

// forgetWords takes a row out of the index of words.
func forgetWords(ctx context.Context, tx *store.Tx, key PhoneKey, payouts bool, r *WordRow) error {
	for _, mark := range key.marks(r) {
		if _, err := tx.DB().Exec(ctx, forgetWord, r.Client[:], mark, kindOf(payouts), r.ID[:]); err != nil {
			return err
		}
	}
	return nil
}

// RefsByText returns payments, or payouts, that the index of words may have for a text: of one client, or of
// all if it is till.House; up to limit of each piece of the text. They are yet to be compared.
func RefsByText(ctx context.Context, tx *store.Tx, key PhoneKey, client till.ID, payouts bool, t Text, limit int) (refs []store.Ref, err error) {
	add := func(more []store.Ref, e error) {
		if refs = append(refs, more...); err == nil {
			err = e
		}
	}
	pieces := t.anchors()
	for _, a := range pieces {
		add(refsByMark(ctx, tx, client, payouts, key.wordMark(wordKind, a), limit))
		if len([]rune(a)) >= minPart {
			from, to := key.wordRange(wordKind, a)
			add(refsByMarks(ctx, tx, client, payouts, from, to, limit))
		}
	}
	if t.digits && len(t.joined) >= minPart {
		from, to := key.wordRange(phoneKind, reversed(t.joined))
		add(refsByMarks(ctx, tx, client, payouts, from, to, limit))
	}
	if from, to, ok := t.idRange(); ok {
		if client == till.House {
			add(readRefs(ctx, tx, selectBetweenOfAll[payouts], from[:], to[:], limit))
		} else {
			add(readRefs(ctx, tx, selectBetween[payouts], client[:], from[:], to[:], limit))
		}
		if len(t.id) == idTail {
			add(refsByMark(ctx, tx, client, payouts, key.wordMark(wordKind, t.id), limit))
		}
	}
	return refs, err
}

func refsByMark(ctx context.Context, tx *store.Tx, client till.ID, payouts bool, mark int64, limit int) ([]store.Ref, error) {
	if client == till.House {
		return readRefs(ctx, tx, selectByMarkOfAll, mark, kindOf(payouts), limit)
	}
	return readRefs(ctx, tx, selectByMark, client[:], mark, kindOf(payouts), limit)
}

func refsByMarks(ctx context.Context, tx *store.Tx, client till.ID, payouts bool, from, to int64, limit int) ([]store.Ref, error) {
	if client == till.House {
		return readRefs(ctx, tx, selectByMarksOfAll, from, to, kindOf(payouts), maxInRange, limit)
	}
	return readRefs(ctx, tx, selectByMarks, client[:], from, to, kindOf(payouts), maxInRange, limit)
}

// RefsByAmount returns up to limit payments, or payouts, that the index has for an amount, newest first:
// of one client, or of all if it is till.House. They are yet to be compared.
func RefsByAmount(ctx context.Context, tx *store.Tx, key PhoneKey, client till.ID, payouts bool, amount till.Money, limit int) ([]store.Ref, error) {
	return refsByMark(ctx, tx, client, payouts, key.amountMark(amount), limit)
}

// EachNewest calls each with up to limit of the newest payments, or payouts, from one id on and before another: of
// one client, the newest first, or of all if it is till.House. It returns the last one and how many there were.
func EachNewest(ctx context.Context, tx *store.Tx, client till.ID, payouts bool, from, before till.ID, limit int, each func(r *WordRow)) (last till.ID, n int, err error) {
	q, args := selectNewest[payouts], []any{client[:], from[:], before[:], limit}
	if client == till.House {
		q, args = selectNewestOfAll[payouts], []any{from[:], limit}
	}
	err = tx.DB().Query(ctx, q, args, func(r db.Row) error {
		row, err := scanWordRow(r)
		if err == nil {
			last, n = row.ID, n+1
			each(row)
		}
		return err
	})
	return last, n, err
}
