package checkouts

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

// What the house decides about pages: whom they never ask, and whose are switched off.

var insertBlock = db.Define(db.SQL{Name: "pages.insertBlock",
	SQLite: `INSERT INTO page_blocks (name, blocked_at, blocked_by, reason) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING`})

var deleteBlock = db.Define(db.SQL{Name: "pages.deleteBlock",
	SQLite: `DELETE FROM page_blocks WHERE name = $1`})

var selectBlock = db.Define(db.SQL{Name: "pages.selectBlock",
	SQLite: `SELECT blocked_at, blocked_by, reason FROM page_blocks WHERE name = $1`})

var selectBlocks = db.Define(db.SQL{Name: "pages.selectBlocks",
	SQLite: `SELECT blocked_at, blocked_by, reason FROM page_blocks ORDER BY blocked_at DESC, name LIMIT $1`})

var insertSwitch = db.Define(db.SQL{Name: "pages.insertSwitch",
	SQLite: `INSERT INTO page_switches (switched_at, client_id, switched_by, reason) VALUES ($1, $2, $3, $4) ON CONFLICT (client_id) DO NOTHING`})

var deleteSwitch = db.Define(db.SQL{Name: "pages.deleteSwitch",
	SQLite: `DELETE FROM page_switches WHERE client_id = $1`})

var selectOff = db.Define(db.SQL{Name: "pages.selectOff",
	SQLite: `SELECT 1 FROM page_switches WHERE client_id IN ($1, $2) LIMIT 1`})

var selectSwitches = db.Define(db.SQL{Name: "pages.selectSwitches",
	SQLite: `SELECT client_id, switched_at, switched_by, reason FROM page_switches ORDER BY client_id LIMIT $1`})

// Block is a number that pages never ask. Which one it is nobody can read.
type Block struct {
	At         till.Time
	By, Reason string
}

// Switch says that the pages of a client, or of store.EveryClient, are switched off.
type Switch struct {
	Client till.ID
	Block
}

// AddBlock blocks a number by its name. It reports false if it was blocked before.
func AddBlock(ctx context.Context, tx *store.Tx, name [32]byte, b Block) (bool, error) {
	n, err := tx.DB().Exec(ctx, insertBlock, name[:], int64(b.At), b.By, b.Reason)
	return n == 1, err
}

// RemoveBlock reports false if the number was not blocked.
func RemoveBlock(ctx context.Context, tx *store.Tx, name [32]byte) (bool, error) {
	n, err := tx.DB().Exec(ctx, deleteBlock, name[:])
	return n == 1, err
}

// BlockOf returns a number's block; false: pages may ask it.
func BlockOf(ctx context.Context, tx *store.Tx, name [32]byte) (b Block, blocked bool, err error) {
	blocked, err = tx.DB().QueryRow(ctx, selectBlock, []any{name[:]}, &b.At, &b.By, &b.Reason)
	return b, blocked, err
}

// Blocks returns the newest blocks.
func Blocks(ctx context.Context, tx *store.Tx, limit int) ([]Block, error) {
	return db.ReadAll(ctx, tx.DB(), selectBlocks, []any{limit}, func(r db.Row) (b Block, err error) {
		err = r.Scan(&b.At, &b.By, &b.Reason)
		return b, err
	})
}

// SwitchOff switches pages off. It reports false if they were off before.
func SwitchOff(ctx context.Context, tx *store.Tx, s Switch) (bool, error) {
	n, err := tx.DB().Exec(ctx, insertSwitch, int64(s.At), s.Client[:], s.By, s.Reason)
	return n == 1, err
}

// SwitchOn reports false if the pages of the client, or of store.EveryClient, were not off.
func SwitchOn(ctx context.Context, tx *store.Tx, client till.ID) (bool, error) {
	n, err := tx.DB().Exec(ctx, deleteSwitch, client[:])
	return n == 1, err
}

// Off reports whether a client's pages are switched off, alone or with all others.
func Off(ctx context.Context, tx *store.Tx, client till.ID) (bool, error) {
	one := 0
	return tx.DB().QueryRow(ctx, selectOff, []any{client[:], store.EveryClient[:]}, &one)
}

// Switches returns whose pages are switched off, store.EveryClient first.
func Switches(ctx context.Context, tx *store.Tx, limit int) ([]Switch, error) {
	return db.ReadAll(ctx, tx.DB(), selectSwitches, []any{limit}, func(r db.Row) (s Switch, err error) {
		err = r.Scan(db.ID(&s.Client), &s.At, &s.By, &s.Reason)
		return s, err
	})
}
