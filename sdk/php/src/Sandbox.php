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

    /** The customer's "approve" or "decline", or one of the ends "wrong_pin" and "no_funds". */
    public function decide(string $payment_id, string $action): SandboxDecision
    {
        $body = Json::render((new DecideSandboxPrompt($action))->toJson());

        return $this->c->read(SandboxDecision::class, new Call(Operations::DECIDE_SANDBOX_PROMPT, [$payment_id], body: $body));
    }

    /** What the sandbox plays, by the last digits of a phone. */
    public function stories(): SandboxStoryList
    {
        return $this->c->read(SandboxStoryList::class, new Call(Operations::LIST_SANDBOX_STORIES));
    }

    /** Disables an endpoint as if it had failed for five days. */
    public function disableEndpoint(string $id): WebhookEndpoint
    {
        return $this->c->read(WebhookEndpoint::class, new Call(Operations::DISABLE_SANDBOX_ENDPOINT, [$id]));
    }
}
