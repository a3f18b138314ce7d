package till

import "context"

// Sandbox are the calls that play the customer, with test keys only.
type Sandbox struct{ c *Client }

// Prompts lists what waits for a decision.
func (s *Sandbox) Prompts(ctx context.Context) (*SandboxPromptList, error) {
	return read[SandboxPromptList](ctx, s.c, request{op: opListSandboxPrompts})
}

// Decide is the customer's "approve" or "decline", or one of the ends "wrong_pin" and "no_funds".
func (s *Sandbox) Decide(ctx context.Context, paymentID, action string) (*SandboxDecision, error) {
	return send[SandboxDecision](ctx, s.c, opDecideSandboxPrompt, DecideSandboxPrompt{Action: action}, paymentID)
}

// Stories lists what the sandbox plays, by the last digits of a phone.
func (s *Sandbox) Stories(ctx context.Context) (*SandboxStoryList, error) {
	return read[SandboxStoryList](ctx, s.c, request{op: opListSandboxStories})
}

// DisableEndpoint disables an endpoint as if it had failed for five days.
func (s *Sandbox) DisableEndpoint(ctx context.Context, id string) (*WebhookEndpoint, error) {
	return read[WebhookEndpoint](ctx, s.c, request{op: opDisableSandboxEndpoint, params: []string{id}})
}
