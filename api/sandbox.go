package api

import (
	"net/http"

	"till"
	"till/provider/sandbox"
)

// listPrompts is GET /sandbox/prompts.
func (c *exchange) listPrompts() error {
	prompts, err := c.s.Sandbox.Prompts(c.r.Context(), c.session.Client.ID, sandbox.MaxPrompts)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, listOf(prompts, func(p sandbox.Prompt) prompt {
		return prompt{p.Payment, p.Phone, money{p.Amount.Minor, p.Amount.Currency}, p.ExpiresAt}
	}))
}

type prompt struct {
	PaymentID till.ID   `json:"payment_id"`
	Phone     string    `json:"phone"`
	Amount    money     `json:"amount"`
	ExpiresAt till.Time `json:"expires_at"`
}

type money struct {
	Value    int64  `json:"value,string"`
	Currency string `json:"currency"`
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
	return c.answer(http.StatusAccepted, struct {
		PaymentID till.ID `json:"payment_id"`
		Action    string  `json:"action"`
	}{id, *req.Action})
}

// listStories is GET /sandbox/stories.
func (c *exchange) listStories() error {
	return c.answer(http.StatusOK, listOf(sandbox.Stories(), func(s sandbox.Story) story {
		return story{s.Subject, s.Name, orNull(s.EndsIn), s.Description, s.Status, orNull(s.Reason), s.Events}
	}))
}

type story struct {
	Subject       string              `json:"subject"`
	Name          string              `json:"name"`
	EndsIn        *string             `json:"ends_in"`
	Description   string              `json:"description"`
	Status        string              `json:"status"`
	FailureReason *till.FailureReason `json:"failure_reason"`
	Events        []till.EventKind    `json:"events"`
}

// disableSandboxEndpoint is POST /sandbox/webhook-endpoints/{endpoint_id}/disable.
func (c hookHandlers) disableSandboxEndpoint() error {
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
