<?php

declare(strict_types=1);

namespace Till;

/** The calls that play the customer, with test keys only. */
final class Sandbox
{
    public function __construct(private readonly Client $c)
    {
    }

    /** What waits for a decision. */
    public function prompts(): SandboxPromptList
    {
        return $this->c->read(SandboxPromptList::class, new Call(Operations::LIST_SANDBOX_PROMPTS));
    }

    /** The customer's "approve" or "decline". */
    public function decide(string $payment_id, string $action): SandboxDecision
    {
        $body = Json::render((new DecideSandboxPrompt($action))->toJson());

        return $this->c->read(SandboxDecision::class, new Call(Operations::DECIDE_SANDBOX_PROMPT, [$payment_id], body: $body));
    }
}
