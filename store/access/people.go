package access

import (
	"context"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

const personColumns = `p.person_id, p.login, p.name, p.language, p.zone, p.theme, p.no_keys, p.created_at, p.disabled_at, p.seen_at,
	p.password, p.totp, p.totp_step,
	(SELECT count(*) FROM passkeys k WHERE k.person_id = p.person_id),
	(SELECT count(*) FROM recovery_codes c WHERE c.person_id = p.person_id)`

var insertPerson = db.Define(db.SQL{Name: "people.insert",
	SQLite: `INSERT INTO people (person_id, login, name, language, zone, theme, no_keys, created_at, password)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`})

var selectPerson = db.Define(db.SQL{Name: "people.selectPerson",
	SQLite: `SELECT ` + personColumns + ` FROM people p WHERE p.person_id = $1`})

var selectPersonByLogin = db.Define(db.SQL{Name: "people.selectByLogin",
	SQLite: `SELECT ` + personColumns + ` FROM people p WHERE p.login = $1`})

var selectPeople = db.Define(db.SQL{Name: "people.selectPeople",
	SQLite: `SELECT ` + personColumns + ` FROM people p WHERE p.person_id > $1 ORDER BY p.person_id LIMIT $2`})

var lockPerson = db.Define(db.SQL{Name: "people.lock",
	SQLite:   `SELECT person_id FROM people WHERE person_id = $1`,
	Postgres: `SELECT person_id FROM people WHERE person_id = $1 FOR UPDATE`})

var selectAnyPerson = db.Define(db.SQL{Name: "people.selectAny",
	SQLite: `SELECT 1 FROM people p WHERE p.disabled_at IS NULL AND (p.password IS NOT NULL OR EXISTS (SELECT 1 FROM passkeys k WHERE k.person_id = p.person_id)) LIMIT 1`})

var updateProfile = db.Define(db.SQL{Name: "people.updateProfile",
	SQLite: `UPDATE people SET name = $1, language = $2, zone = $3, theme = $4, no_keys = $5 WHERE person_id = $6`})

var updatePassword = db.Define(db.SQL{Name: "people.updatePassword",
	SQLite: `UPDATE people SET password = $1 WHERE person_id = $2`})

var updateTOTP = db.Define(db.SQL{Name: "people.updateTOTP",
	SQLite: `UPDATE people SET totp = $1, totp_step = $2 WHERE person_id = $3`})

var useTOTPStep = db.Define(db.SQL{Name: "people.useTOTPStep",
	SQLite: `UPDATE people SET totp_step = $1 WHERE person_id = $2 AND totp_step < $3 AND totp IS NOT NULL`})

var updateDisabled = db.Define(db.SQL{Name: "people.updateDisabled",
	SQLite: `UPDATE people SET disabled_at = $1 WHERE person_id = $2`})

var touchPerson = db.Define(db.SQL{Name: "people.touch",
	SQLite: `UPDATE people SET seen_at = $1 WHERE person_id = $2 AND coalesce(seen_at, 0) < $3`})

var upsertMembership = db.Define(db.SQL{Name: "people.upsertMembership",
	SQLite: `INSERT INTO memberships (client_id, person_id, role, granted_at, granted_by) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (client_id, person_id) DO UPDATE SET role = excluded.role, granted_at = excluded.granted_at, granted_by = excluded.granted_by`})

var deleteMembership = db.Define(db.SQL{Name: "people.deleteMembership",
	SQLite: `DELETE FROM memberships WHERE client_id = $1 AND person_id = $2`})

var selectMemberships = db.Define(db.SQL{Name: "people.selectMemberships",
	SQLite: `SELECT m.client_id, m.role, m.granted_at, m.granted_by, coalesce(r.second_factor, 0)
		FROM memberships m LEFT JOIN access_rules r ON r.client_id = m.client_id WHERE m.person_id = $1 ORDER BY m.client_id`})

var selectColleagues = db.Define(db.SQL{Name: "people.selectColleagues",
	SQLite: `SELECT ` + personColumns + `, m.role,
		(SELECT count(*) FROM sessions s WHERE s.person_id = p.person_id AND s.expires_at > $1 AND s.seen_at + s.idle > $2)
		FROM memberships m JOIN people p ON p.person_id = m.person_id WHERE m.client_id = $3 ORDER BY p.name, p.person_id LIMIT $4`,
	// People are on the coordinator, so what a node has of the client comes there first.
	Citus: `WITH m AS MATERIALIZED (SELECT person_id, role FROM memberships WHERE client_id = $3)
		SELECT ` + personColumns + `, m.role,
		(SELECT count(*) FROM sessions s WHERE s.person_id = p.person_id AND s.expires_at > $1 AND s.seen_at + s.idle > $2)
		FROM m JOIN people p ON p.person_id = m.person_id ORDER BY p.name, p.person_id LIMIT $4`})

var countColleagues = db.Define(db.SQL{Name: "people.countColleagues",
	SQLite: `SELECT count(*) FROM memberships WHERE client_id = $1`})

var selectClientsOf = db.Define(db.SQL{Name: "people.selectClients",
	SQLite: `SELECT c.client_id, c.name, c.mode, c.suspended, c.created_at
		FROM memberships m JOIN clients c ON c.client_id = m.client_id WHERE m.person_id = $1 ORDER BY c.name, c.client_id LIMIT $2`})

var selectAccessRule = db.Define(db.SQL{Name: "people.selectAccessRule",
	SQLite: `SELECT second_factor FROM access_rules WHERE client_id = $1`})

var upsertAccessRule = db.Define(db.SQL{Name: "people.upsertAccessRule",
	SQLite: `INSERT INTO access_rules (client_id, second_factor) VALUES ($1, $2)
		ON CONFLICT (client_id) DO UPDATE SET second_factor = excluded.second_factor`})

var insertLook = db.Define(db.SQL{Name: "people.insertLook",
	SQLite: `INSERT INTO looks (client_id, person_id, day) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`})

// Person is a person with what they sign in with. The secrets stay inside the
// package people.
type Person struct {
	till.Person
	Password string // PHC text; "": none
	TOTP     []byte // encrypted; nil: none
	TOTPStep int64  // the last step whose code was used
}

// dest returns the destinations of personColumns; done completes the person.
func (p *Person) dest() []any {
	return []any{db.ID(&p.ID), &p.Login, &p.Name, &p.Language, db.Text(&p.Zone), db.Text(&p.Theme), db.Bool(&p.NoKeys), &p.CreatedAt,
		db.Int(&p.DisabledAt), db.Int(&p.SeenAt), db.Text(&p.Password), &p.TOTP, &p.TOTPStep, db.Int(&p.Passkeys), db.Int(&p.RecoveryCodes)}
}

func (p *Person) complete() { p.HasPassword, p.HasTOTP = p.Password != "", len(p.TOTP) > 0 }

// InsertPerson writes a new person. It returns ErrConstraint if the login is
// taken.
func InsertPerson(ctx context.Context, tx *store.Tx, p *Person) error {
	_, err := tx.DB().Exec(ctx, insertPerson, p.ID[:], p.Login, p.Name, p.Language, db.OrNull(p.Zone), db.OrNull(p.Theme), p.NoKeys,
		int64(p.CreatedAt), db.OrNull(p.Password))
	return err
}

// PersonByID returns one person, nil if there is none.
func PersonByID(ctx context.Context, tx *store.Tx, id till.ID) (*Person, error) {
	return person(ctx, tx, selectPerson, id[:])
}

// PersonByLogin returns the person with a login, nil if there is none.
func PersonByLogin(ctx context.Context, tx *store.Tx, login string) (*Person, error) {
	return person(ctx, tx, selectPersonByLogin, login)
}

func person(ctx context.Context, tx *store.Tx, q *db.SQL, key any) (*Person, error) {
	p := &Person{}
	found, err := tx.DB().QueryRow(ctx, q, []any{key}, p.dest()...)
	if err != nil || !found {
		return nil, err
	}
	p.complete()
	return p, nil
}

// People returns up to limit people whose id is beyond after, by id.
func People(ctx context.Context, tx *store.Tx, after till.ID, limit int) (out []*till.Person, err error) {
	err = tx.DB().Query(ctx, selectPeople, []any{after[:], limit}, func(r db.Row) error {
		p := &Person{}
		err := r.Scan(p.dest()...)
		p.complete()
		out = append(out, &p.Person)
		return err
	})
	return out, err
}

// LockPerson locks a person's row until the commit: one change of what they
// sign in with at a time.
func LockPerson(ctx context.Context, tx *store.Tx, id till.ID) (found bool, err error) {
	var locked till.ID
	return tx.DB().QueryRow(ctx, lockPerson, []any{id[:]}, db.ID(&locked))
}

// AnyPerson reports whether somebody may sign in.
func AnyPerson(ctx context.Context, tx *store.Tx) (bool, error) {
	var one int64
	return tx.DB().QueryRow(ctx, selectAnyPerson, []any{}, &one)
}

// UpdateProfile writes what people change about themselves.
func UpdateProfile(ctx context.Context, tx *store.Tx, p *till.Person) error {
	_, err := tx.DB().Exec(ctx, updateProfile, p.Name, p.Language, db.OrNull(p.Zone), db.OrNull(p.Theme), p.NoKeys, p.ID[:])
	return err
}

// SetPassword writes a person's password, as PHC text; "" removes it.
func SetPassword(ctx context.Context, tx *store.Tx, person till.ID, password string) error {
	_, err := tx.DB().Exec(ctx, updatePassword, db.OrNull(password), person[:])
	return err
}

// SetTOTP writes a person's encrypted TOTP secret and the step whose code was
// used; nil removes it.
func SetTOTP(ctx context.Context, tx *store.Tx, person till.ID, sealed []byte, step int64) error {
	_, err := tx.DB().Exec(ctx, updateTOTP, db.BytesOrNull(sealed), step, person[:])
	return err
}

// UseTOTPStep records that the code of a step was used, and reports whether it
// is later than the last.
func UseTOTPStep(ctx context.Context, tx *store.Tx, person till.ID, step int64) (bool, error) {
	n, err := tx.DB().Exec(ctx, useTOTPStep, step, person[:], step)
	return n == 1, err
}

// SetDisabled keeps a person out since a moment, or lets them in if it is
// zero.
func SetDisabled(ctx context.Context, tx *store.Tx, person till.ID, since till.Time) error {
	_, err := tx.DB().Exec(ctx, updateDisabled, db.OrNull(since), person[:])
	return err
}

// SetMembership gives a person a role with a client, in place of the one they
// had.
func SetMembership(ctx context.Context, tx *store.Tx, m *till.Membership) error {
	_, err := tx.DB().Exec(ctx, upsertMembership, m.Client[:], m.Person[:], string(m.Role), int64(m.GrantedAt), m.GrantedBy)
	return err
}

// DeleteMembership deletes a person's role with a client.
func DeleteMembership(ctx context.Context, tx *store.Tx, client, person till.ID) error {
	_, err := tx.DB().Exec(ctx, deleteMembership, client[:], person[:])
	return err
}

// Memberships returns a person's roles, by client: the installation first. strict
// says whether one of the clients asks all its people for a second factor.
func Memberships(ctx context.Context, tx *store.Tx, person till.ID) (out []till.Membership, strict bool, err error) {
	err = tx.DB().Query(ctx, selectMemberships, []any{person[:]}, func(r db.Row) error {
		m := till.Membership{Person: person}
		var asks bool
		err := r.Scan(db.ID(&m.Client), db.Text(&m.Role), &m.GrantedAt, &m.GrantedBy, db.Bool(&asks))
		out, strict = append(out, m), strict || asks
		return err
	})
	return out, strict, err
}

// Colleague is a person in the list of a client.
type Colleague struct {
	Person   till.Person
	Role     till.Role
	Sessions int
}

// Colleagues returns up to limit people of a client, by name.
func Colleagues(ctx context.Context, tx *store.Tx, client till.ID, now till.Time, limit int) (out []*Colleague, err error) {
	err = tx.DB().Query(ctx, selectColleagues, []any{int64(now), int64(now), client[:], limit}, func(r db.Row) error {
		p, c := &Person{}, &Colleague{}
		err := r.Scan(append(p.dest(), db.Text(&c.Role), db.Int(&c.Sessions))...)
		p.complete()
		c.Person = p.Person
		out = append(out, c)
		return err
	})
	return out, err
}

// CountColleagues returns how many people a client has.
func CountColleagues(ctx context.Context, tx *store.Tx, client till.ID) (n int, err error) {
	_, err = tx.DB().QueryRow(ctx, countColleagues, []any{client[:]}, &n)
	return n, err
}

// ClientsOf returns up to limit clients that a person has a role with, by name.
func ClientsOf(ctx context.Context, tx *store.Tx, person till.ID, limit int) (out []*till.Client, err error) {
	err = tx.DB().Query(ctx, selectClientsOf, []any{person[:], limit}, func(r db.Row) error {
		c := &till.Client{}
		err := r.Scan(db.ID(&c.ID), &c.Name, &c.Mode, db.Bool(&c.Suspended), &c.CreatedAt)
		out = append(out, c)
		return err
	})
	return out, err
}

// FactorRule reports whether a client asks all its people for a second factor.
func FactorRule(ctx context.Context, tx *store.Tx, client till.ID) (required bool, err error) {
	_, err = tx.DB().QueryRow(ctx, selectAccessRule, []any{client[:]}, db.Bool(&required))
	return required, err
}

// SetFactorRule sets FactorRule.
func SetFactorRule(ctx context.Context, tx *store.Tx, client till.ID, required bool) error {
	_, err := tx.DB().Exec(ctx, upsertAccessRule, client[:], required)
	return err
}

// InsertLook records that one of the installation's staff viewed a client on the
// day of UTC that a moment is in, and reports whether it is the first time.
func InsertLook(ctx context.Context, tx *store.Tx, client, person till.ID, at till.Time) (bool, error) {
	day := int64(at) / int64(24*time.Hour/time.Microsecond)
	n, err := tx.DB().Exec(ctx, insertLook, client[:], person[:], day)
	return n == 1, err
}
