package collect_test

import (
	"strings"
	"testing"

	"till"
	"till/collect"
	"till/engine"
	"till/store"
	"till/store/storetest"
)

// What the engine remembers of a payment has not its document, which can be as
// large as the client likes: thousands of open ones would fill the memory.
func TestAJobKeepsNoDocument(t *testing.T) {
	t.Parallel()
	c := collect.New(engine.Config{Secret: []byte("a secret"), Store: storetest.Open(t, storetest.Engines()[0].Config(t))})
	document := []byte(`"description":"two loaves","customer":{"phone":"242061234567"},"metadata":{"note":"` + strings.Repeat("m", 48<<10) + `"}`)
	row := &store.PaymentRow{Payment: till.Payment{ID: till.ID{1}, IdempotencyKey: "0192e0a0-0000-7000-8000-000000000001", Reference: "bakery 7", Document: document}}
	j := c.Instruction(row)
	kept := j.Row.(*store.PaymentRow)
	if len(kept.Document) != 0 || kept.Reference != "bakery 7" || j.Request.Description != "two loaves" {
		t.Errorf("the job keeps %d bytes of the document, the reference %q, the description %q", len(kept.Document), kept.Reference, j.Request.Description)
	}
	if len(row.Document) != len(document) {
		t.Error("the row that is answered has lost its document")
	}
}
