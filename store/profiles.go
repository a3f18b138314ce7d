package store

import (
	"context"

	"till"
	"till/internal/db"
)

var selectProfile = db.Define(db.SQL{Name: "profiles.select",
	SQLite: `SELECT name, zone, country, language, receipt_head, receipt_foot FROM client_profiles WHERE client_id = $1`})

var saveProfile = db.Define(db.SQL{Name: "profiles.save",
	SQLite: `INSERT INTO client_profiles (client_id, name, zone, country, language, receipt_head, receipt_foot, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (client_id) DO UPDATE SET name = excluded.name, zone = excluded.zone, country = excluded.country, language = excluded.language,
		receipt_head = excluded.receipt_head, receipt_foot = excluded.receipt_foot, updated_at = excluded.updated_at`})

// Profile returns how a client is shown to people: what was saved, or the
// defaults.
func (tx *Tx) Profile(ctx context.Context, client till.ID) (*till.Profile, error) {
	p := &till.Profile{ClientID: client, Zone: till.DefaultZone}
	_, err := tx.db.QueryRow(ctx, selectProfile, []any{client[:]}, &p.Name, &p.Zone, &p.Country, &p.Language, &p.ReceiptHead, &p.ReceiptFoot)
	return p, err
}

// SaveProfile writes how a client is shown to people.
func (tx *Tx) SaveProfile(ctx context.Context, p *till.Profile, at till.Time) error {
	_, err := tx.db.Exec(ctx, saveProfile, p.ClientID[:], p.Name, p.Zone, p.Country, p.Language, p.ReceiptHead, p.ReceiptFoot, int64(at))
	return err
}
