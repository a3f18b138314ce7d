package api

import (
	"net/http"

	"till"
	"till/internal/jsonx"
	"till/provider/sandbox"
)

// listPrompts is GET /sandbox/prompts.
func (c *exchange) listPrompts() error {
	prompts, err := c.s.Sandbox.Prompts(c.r.Context(), c.session.Client.ID, sandbox.MaxPrompts)
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), prompts, func(b []byte, p sandbox.Prompt) []byte {
		b = append(b, `{"payment_id":`...)
		b = p.Payment.AppendJSON(b)
		b = append(b, `,"phone":`...)
		b = jsonx.AppendString(b, p.Phone)
		b = append(b, `,"amount":`...)
		b = appendMoney(b, p.Amount)
		b = append(b, `,"expires_at":`...)
		b = p.ExpiresAt.AppendJSON(b)
		return append(b, '}')
	})
	return c.json(http.StatusOK, append(b, '}'))
}

// decisionRequest is the body of POST /sandbox/prompts/{payment_id}.
type decisionRequest struct {
	Action *string `json:"action"`
}

// The actions of a customer.
const (
	approve = "approve"
	decline = "decline"
)

// decidePrompt is POST /sandbox/prompts/{payment_id}.
func (c *exchange) decidePrompt() error {
	var req decisionRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	field := till.FieldError{Pointer: "/action"}
	switch {
	case req.Action == nil:
		field.Code, field.Detail = till.FieldRequired, "The action is required."
	case *req.Action != approve && *req.Action != decline:
		field.Code, field.Detail = till.FieldInvalidFormat, "The action is approve or decline."
	}
	if field.Code != "" {
		return &till.Error{Code: till.CodeValidationFailed, Fields: []till.FieldError{field}}
	}
	id, err := c.paymentID(till.CodePromptNotFound)
	if err != nil {
		return err
	}
	if err := c.s.Sandbox.Decide(c.r.Context(), c.session.Client.ID, id, *req.Action == approve); err != nil {
		return err
	}
	b := append(c.buffer(), `{"payment_id":`...)
	b = id.AppendJSON(b)
	b = append(b, `,"action":`...)
	b = jsonx.AppendString(b, *req.Action)
	return c.json(http.StatusAccepted, append(b, '}'))
}
