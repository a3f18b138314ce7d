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
	case !sandbox.Decision(*req.Action).Valid():
		field.Code, field.Detail = till.FieldInvalidFormat, "The action is approve, decline, wrong_pin or no_funds."
	}
	if field.Code != "" {
		return &till.Error{Code: till.CodeValidationFailed, Fields: []till.FieldError{field}}
	}
	id, err := c.paymentID(till.CodePromptNotFound)
	if err != nil {
		return err
	}
	if err := c.s.Sandbox.Decide(c.r.Context(), c.session.Client.ID, id, sandbox.Decision(*req.Action)); err != nil {
		return err
	}
	b := append(c.buffer(), `{"payment_id":`...)
	b = id.AppendJSON(b)
	b = append(b, `,"action":`...)
	b = jsonx.AppendString(b, *req.Action)
	return c.json(http.StatusAccepted, append(b, '}'))
}

// listStories is GET /sandbox/stories.
func (c *exchange) listStories() error {
	b := appendItems(c.buffer(), sandbox.Stories(), func(b []byte, s sandbox.Story) []byte {
		b = append(b, `{"subject":`...)
		b = jsonx.AppendString(b, s.Subject)
		b = append(b, `,"name":`...)
		b = jsonx.AppendString(b, s.Name)
		b = append(b, `,"ends_in":`...)
		b = jsonx.AppendStringOrNull(b, s.EndsIn)
		b = append(b, `,"description":`...)
		b = jsonx.AppendString(b, s.Description)
		b = append(b, `,"status":`...)
		b = jsonx.AppendString(b, s.Status)
		b = append(b, `,"failure_reason":`...)
		b = jsonx.AppendStringOrNull(b, string(s.Reason))
		b = append(b, `,"events":[`...)
		for i, k := range s.Events {
			if i > 0 {
				b = append(b, ',')
			}
			b = jsonx.AppendString(b, string(k))
		}
		return append(b, ']', '}')
	})
	return c.json(http.StatusOK, append(b, '}'))
}

// disableSandboxEndpoint is POST /sandbox/webhook-endpoints/{endpoint_id}/disable.
func (c *exchange) disableSandboxEndpoint() error {
	id, err := c.endpointID()
	if err != nil {
		return err
	}
	e, err := c.s.Endpoints.DisableAsFailing(c.auditContext(), c.session.Client.ID, id, c.session.Actor())
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, append(appendEndpoint(c.buffer(), e), '}'))
}
