package store

import (
	"context"
	"strings"

	"till"
	"till/internal/db"
)

// levelIssuers is the level from which on an aggregator's receipts are recorded by issuer.
// An older program would search for them by connection, and credit one a second time.
const levelIssuers = 3

// aggregator begins the fingerprints of accounts at an aggregator. It passes on the receipts
// of several operators, and each of them counts its own, in each country. The fingerprint is
// part of each row, so who knows no configuration knows this, too.
const aggregator = "pawapay "

// Aggregated reports whether an aggregator passes on the subject's receipt.
func (s *Subject) Aggregated() bool { return strings.HasPrefix(s.Fingerprint, aggregator) }

// Issuer returns who issues the subject's receipt: its connection, or the operator in a
// country behind an aggregator.
func (s *Subject) Issuer() string {
	if s.Aggregated() {
		return issuer(s.Connection, s.Method, s.Country)
	}
	return s.Connection
}

// issuer names an operator behind an aggregator. No connection's name has a slash.
func issuer(connection, method, country string) string {
	return connection + "/" + method + "/" + country
}

// isAggregated and issuerOf are Aggregated and Issuer of a row of payments or payouts.
func isAggregated(alias string) string {
	return `substr(` + alias + `.fingerprint, 1, 8) = '` + aggregator + `'`
}

func IssuerOf(alias string) string {
	return `CASE WHEN ` + isAggregated(alias) + ` THEN ` + alias + `.connection || '/' || ` + alias + `.method || '/' || coalesce(` + alias + `.country, '') ELSE ` + alias + `.connection END`
}

// JoinReceipt joins r, the record of the receipt of a payment or payout p: by its issuer, and
// by its connection if there is none, because that is how all were recorded before
// levelIssuers. It is one line; see verifyOnCitus.
func JoinReceipt(kind till.SubjectKind) string {
	same := `.receipt = p.provider_reference AND `
	return `LEFT JOIN operator_receipts r ON r` + same + `r.kind = '` + string(kind) + `' AND r.connection = CASE WHEN ` + isAggregated("p") +
		` AND EXISTS (SELECT 1 FROM operator_receipts i WHERE i` + same + `i.kind = '` + string(kind) + `' AND i.connection = ` + IssuerOf("p") +
		`) THEN ` + IssuerOf("p") + ` ELSE p.connection END`
}

// PayoutSuffix ends the names under which connections keep what is of payouts.
const PayoutSuffix = " payout"

var shareLevel = db.Define(db.SQL{Name: "installation.shareLevel",
	SQLite:   `SELECT level FROM installation WHERE one = 1`,
	Postgres: `SELECT level FROM installation WHERE one = 1 FOR SHARE`})

// ByIssuer reports whether receipts of aggregators are recorded by issuer. If they are not,
// the level stays until the commit: who then sees the new level sees what this transaction
// has recorded by connection.
func (tx *Tx) ByIssuer(ctx context.Context) (bool, error) {
	level, err := tx.InstallationLevel(ctx)
	if err == nil && level < levelIssuers {
		_, err = tx.db.QueryRow(ctx, shareLevel, nil, &level)
	}
	return level >= levelIssuers, err
}

// OwnersOfReceipt returns which payment, or payout, has a receipt on a connection. At an
// aggregator a receipt alone does not say whose it is, so there is none.
func (tx *Tx) OwnersOfReceipt(ctx context.Context, kind till.SubjectKind, connection, text string) (refs []Ref, err error) {
	account := connection
	if kind == till.SubjectPayout {
		account += PayoutSuffix
	}
	fingerprint, err := tx.ConnectionFingerprint(ctx, account)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(fingerprint, aggregator) {
		return nil, nil
	}
	owners, err := tx.ReceiptOwners(ctx, kind, []Receipt{{connection, text}})
	for _, ref := range owners {
		refs = append(refs, ref)
	}
	return refs, err
}

var selectLevel = db.Define(db.SQL{Name: "installation.selectLevel",
	SQLite: `SELECT level FROM installation WHERE one = 1`})

var selectFingerprint = db.Define(db.SQL{Name: "installation.selectFingerprint",
	SQLite: `SELECT fingerprint FROM connections WHERE name = $1`})

// InstallationLevel returns what may be written: the level that was last raised to, 1
// before the first start.
func (tx *Tx) InstallationLevel(ctx context.Context) (int, error) {
	level := 1
	_, err := tx.db.QueryRow(ctx, selectLevel, nil, &level)
	return level, err
}

// ConnectionFingerprint returns the account that a connection's name meant when it
// was last registered; "" if it never was.
func (tx *Tx) ConnectionFingerprint(ctx context.Context, name string) (string, error) {
	var f string
	_, err := tx.db.QueryRow(ctx, selectFingerprint, []any{name}, &f)
	return f, err
}
