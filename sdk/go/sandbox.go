package till

import "context"

// Sandbox are the calls that play the customer, with test keys only.
type Sandbox struct{ c *Client }

// Prompts lists what waits for a decision.
func (s *Sandbox) Prompts(ctx context.Context) (*SandboxPromptList, error) {
	return read[SandboxPromptList](ctx, s.c, request{op: opListSandboxPrompts})
}

// Decide is the customer's "approve" or "decline".
func (s *Sandbox) Decide(ctx context.Context, paymentID, action string) (*SandboxDecision, error) {
	return send[SandboxDecision](ctx, s.c, opDecideSandboxPrompt, DecideSandboxPrompt{Action: action}, paymentID)
}
