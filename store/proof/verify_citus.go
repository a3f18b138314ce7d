package proof

import (
	"context"
	"regexp"
	"strings"

	"till"
	"till/internal/db"
	"till/store"
)

// On Citus the record of receipts is on the coordinator. A join with it would send the
// receipts of all clients to the node of one, for each slice, to be searched there once for
// each payment. So a slice is read without them, and whose its receipts are is asked
// afterwards, by their keys.

var joinedReceipts = regexp.MustCompile(`\s+LEFT JOIN operator_receipts r ON [^\n]+`)

// verifyOnCitus returns the text of a slice for one node: it names the client at each table
// and leaves receipts to readOwners.
func verifyOnCitus(text, client string) string {
	text = joinedReceipts.ReplaceAllString(text, "")
	text = strings.NewReplacer(
		` AND (r.subject_id IS NULL OR r.subject_id <> p.id OR r.client_id <> p.client_id)`, ``,
		`r.subject_id = p.id AND r.client_id = p.client_id`, `TRUE`,
		`r.client_id, r.subject_id`, `CAST(NULL AS BYTEA), CAST(NULL AS BYTEA)`).Replace(text)
	if strings.Contains(text, ` r.`) {
		panic("store: a text of verify uses receipts in a way that Citus does not get")
	}
	return db.OfClient(text, client)
}

// readOwners completes payments, or payouts, that were read on Citus.
func readOwners(ctx context.Context, tx *store.Tx, kind till.SubjectKind, all []*VerifyPayment) error {
	if tx.DB().Dialect() != db.Citus {
		return nil
	}
	var receipts []store.Receipt
	for _, p := range all {
		if p.ProviderReference != "" {
			receipts = append(receipts, store.Receipt{Issuer: p.Issuer, Text: p.ProviderReference}, store.Receipt{Issuer: p.Connection, Text: p.ProviderReference})
		}
	}
	owners, err := tx.ReceiptOwners(ctx, kind, receipts)
	for _, p := range all {
		p.ReceiptOwner = ownerOf(owners, p.Issuer, p.Connection, p.ProviderReference)
		p.ReceiptReused = p.ReceiptReused && p.ReceiptOwner != store.Ref{Client: p.ClientID, ID: p.ID}
	}
	return err
}

// ownerOf is joinReceipt of owners that were read.
func ownerOf(owners map[store.Receipt]store.Ref, issuer, connection, text string) store.Ref {
	if owner, ok := owners[store.Receipt{Issuer: issuer, Text: text}]; ok {
		return owner
	}
	return owners[store.Receipt{Issuer: connection, Text: text}]
}

// verifyPaymentsApart is VerifyPaymentsFast on Citus: f is called when the owners of the
// slice's receipts are known.
func verifyPaymentsApart(ctx context.Context, tx *store.Tx, client till.ID, args []any, f func(p *FastPayment) error) (int, error) {
	var all []*FastPayment
	var receipts []store.Receipt // of the same index; without a text where there is none
	var sought []store.Receipt
	err := tx.DB().Query(ctx, selectPaymentsFast, args, func(r db.Row) error {
		p, receipt := &FastPayment{}, store.Receipt{}
		err := r.Scan(append([]any{db.Text(&receipt.Text), &receipt.Issuer}, p.dest()...)...)
		all, receipts = append(all, p), append(receipts, receipt)
		if receipt.Text != "" {
			sought = append(sought, receipt, store.Receipt{Issuer: p.Connection, Text: receipt.Text})
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	owners, err := tx.ReceiptOwners(ctx, till.SubjectPayment, sought)
	if err != nil {
		return 0, err
	}
	for i, p := range all {
		p.Usual = p.Usual && (receipts[i].Text == "" || ownerOf(owners, receipts[i].Issuer, p.Connection, receipts[i].Text) == store.Ref{Client: client, ID: p.ID})
		if err := f(p); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}
