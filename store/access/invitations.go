package access

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

const invitationColumns = `i.token_hash, i.id, i.kind, i.client_id, i.role, i.name, i.login, i.person_id, i.invited_by, i.created_at, i.expires_at, i.spent_at, i.withdrawn_at,
	(SELECT c.name FROM clients c WHERE c.client_id = i.client_id)`

var insertInvitation = db.Define(db.SQL{Name: "invitations.insert",
	SQLite: `INSERT INTO invitations (token_hash, id, kind, client_id, role, name, login, person_id, invited_by, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`})

var selectInvitation = db.Define(db.SQL{Name: "invitations.select",
	SQLite: `SELECT ` + invitationColumns + ` FROM invitations i WHERE i.token_hash = $1`,
	Citus: db.OfClient(`SELECT `+invitationColumns+` FROM invitations i WHERE i.token_hash = $1`,
		`(SELECT j.client_id FROM invitations j WHERE j.token_hash = $1)`)})

var selectOpenInvitations = db.Define(db.SQL{Name: "invitations.selectOpen",
	SQLite: `SELECT ` + invitationColumns + ` FROM invitations i
		WHERE i.client_id = $1 AND i.spent_at IS NULL AND i.withdrawn_at IS NULL AND i.expires_at > $2 ORDER BY i.created_at DESC, i.id LIMIT $3`,
	Citus: db.OfClient(`SELECT `+invitationColumns+` FROM invitations i
		WHERE i.client_id = $1 AND i.spent_at IS NULL AND i.withdrawn_at IS NULL AND i.expires_at > $2 ORDER BY i.created_at DESC, i.id LIMIT $3`, "$1")})

var spendInvitation = db.Define(db.SQL{Name: "invitations.spend",
	SQLite: `UPDATE invitations SET spent_at = $1, person_id = $2
		WHERE token_hash = $3 AND spent_at IS NULL AND withdrawn_at IS NULL AND expires_at > $4`})

var withdrawInvitation = db.Define(db.SQL{Name: "invitations.withdraw",
	SQLite: `UPDATE invitations SET withdrawn_at = $1 WHERE client_id = $2 AND id = $3 AND spent_at IS NULL AND withdrawn_at IS NULL`})

var withdrawResets = db.Define(db.SQL{Name: "invitations.withdrawResets",
	SQLite: `UPDATE invitations SET withdrawn_at = $1 WHERE kind = 'reset' AND person_id = $2 AND spent_at IS NULL AND withdrawn_at IS NULL`})

var selectOpenReset = db.Define(db.SQL{Name: "invitations.selectOpenReset",
	SQLite: `SELECT i.id, i.client_id, i.invited_by, i.created_at, i.expires_at FROM invitations i
		WHERE i.kind = 'reset' AND i.person_id = $1 AND i.spent_at IS NULL AND i.withdrawn_at IS NULL AND i.expires_at > $2 ORDER BY i.created_at DESC, i.id LIMIT 1`})

var withdrawAll = db.Define(db.SQL{Name: "invitations.withdrawAll",
	SQLite: `UPDATE invitations SET withdrawn_at = $1 WHERE spent_at IS NULL AND withdrawn_at IS NULL`})

var deleteInvitations = db.Define(db.SQL{Name: "invitations.deleteOld",
	SQLite: `DELETE FROM invitations WHERE expires_at < $1`})

// Invitation is a link that gives a role, or lets a person back in.
type Invitation struct {
	TokenHash   [32]byte
	ID          till.ID
	Kind        string // join or reset
	Client      till.ID
	ClientName  string
	Role        till.Role
	Name, Login string
	Person      till.ID
	InvitedBy   string
	CreatedAt   till.Time
	ExpiresAt   till.Time
	SpentAt     till.Time
	WithdrawnAt till.Time
}

func scanInvitation(r db.Row) (*Invitation, error) {
	i := &Invitation{}
	var hash []byte
	err := r.Scan(&hash, db.ID(&i.ID), &i.Kind, db.ID(&i.Client), db.Text(&i.Role), &i.Name, db.Text(&i.Login), db.ID(&i.Person), &i.InvitedBy,
		&i.CreatedAt, &i.ExpiresAt, db.Int(&i.SpentAt), db.Int(&i.WithdrawnAt), db.Text(&i.ClientName))
	copy(i.TokenHash[:], hash)
	return i, err
}

// InsertInvitation writes a new invitation.
func InsertInvitation(ctx context.Context, tx *store.Tx, i *Invitation) error {
	_, err := tx.DB().Exec(ctx, insertInvitation, i.TokenHash[:], i.ID[:], i.Kind, i.Client[:], string(i.Role), i.Name, db.OrNull(i.Login), db.OrNull(i.Person),
		i.InvitedBy, int64(i.CreatedAt), int64(i.ExpiresAt))
	return err
}

// InvitationByHash returns the invitation of a token, nil if there is none.
func InvitationByHash(ctx context.Context, tx *store.Tx, hash [32]byte) (out *Invitation, err error) {
	err = tx.DB().Query(ctx, selectInvitation, []any{hash[:]}, func(r db.Row) (err error) {
		out, err = scanInvitation(r)
		return err
	})
	return out, err
}

// OpenInvitations returns up to limit invitations of a client that can be
// spent at now, newest first.
func OpenInvitations(ctx context.Context, tx *store.Tx, client till.ID, now till.Time, limit int) (out []*Invitation, err error) {
	err = tx.DB().Query(ctx, selectOpenInvitations, []any{client[:], int64(now), limit}, func(r db.Row) error {
		i, err := scanInvitation(r)
		out = append(out, i)
		return err
	})
	return out, err
}

// SpendInvitation records who has spent an invitation, and reports whether it
// could still be spent.
func SpendInvitation(ctx context.Context, tx *store.Tx, hash [32]byte, person till.ID, now till.Time) (bool, error) {
	n, err := tx.DB().Exec(ctx, spendInvitation, int64(now), person[:], hash[:], int64(now))
	return n == 1, err
}

// WithdrawInvitation ends an open invitation and reports whether there was
// one.
func WithdrawInvitation(ctx context.Context, tx *store.Tx, client, id till.ID, now till.Time) (bool, error) {
	n, err := tx.DB().Exec(ctx, withdrawInvitation, int64(now), client[:], id[:])
	return n == 1, err
}

// WithdrawResets ends the open links that let a person back in.
func WithdrawResets(ctx context.Context, tx *store.Tx, person till.ID, now till.Time) error {
	_, err := tx.DB().Exec(ctx, withdrawResets, int64(now), person[:])
	return err
}

// OpenReset returns the newest link that lets a person back in and can be
// spent at now, with its maker and times; nil if there is none.
func OpenReset(ctx context.Context, tx *store.Tx, person till.ID, now till.Time) (out *Invitation, err error) {
	err = tx.DB().Query(ctx, selectOpenReset, []any{person[:], int64(now)}, func(r db.Row) error {
		out = &Invitation{Kind: "reset", Person: person}
		return r.Scan(db.ID(&out.ID), db.ID(&out.Client), &out.InvitedBy, &out.CreatedAt, &out.ExpiresAt)
	})
	return out, err
}

// DeleteInvitations deletes those that expired before a moment.
func DeleteInvitations(ctx context.Context, tx *store.Tx, before till.Time) error {
	_, err := tx.DB().Exec(ctx, deleteInvitations, int64(before))
	return err
}
