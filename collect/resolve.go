package collect

import (
	"bytes"

	"till"
	"till/internal/jsonx"
)

// stored is what CheckStored reads of a payment's document.
type stored struct {
	Charge *ChargeRequest `json:"charge"`
	Tax    *TaxRequest    `json:"tax"`
}

// CheckStored answers with what is wrong in a stored payment's charge and
// tax: nothing, if the rules were kept when it was written (I15).
func CheckStored(p *till.Payment) []till.FieldError {
	var d stored
	if err := jsonx.Decode(bytes.Join([][]byte{[]byte("{"), p.Document, []byte("}")}, nil), &d); err != nil {
		return []till.FieldError{{Pointer: "", Code: till.CodeMalformedBody, Detail: err.Error()}}
	}
	var c checker
	charge, tax := checkCharge(&c, d.Charge), checkTax(&c, d.Tax)
	return append(c.Fields, till.CheckCharge(p.Amount.Minor, charge, tax)...)
}
