<?php

declare(strict_types=1);

namespace Till;

/** What a receiver answers. */
final class Reply
{
    /** @param array<string, string> $headers */
    public function __construct(
        public readonly string $body,
        public readonly int $status,
        public readonly array $headers = ['Content-Type' => 'text/plain; charset=utf-8'],
        /** Why it is a 500, for your log. */
        public readonly ?\Throwable $error = null,
    ) {
    }

    /** Answers, and lets PHP-FPM go. */
    public function emit(): void
    {
        http_response_code($this->status);
        foreach ($this->headers as $name => $value) {
            header("$name: $value");
        }
        echo $this->body;
        if (function_exists('fastcgi_finish_request')) {
            fastcgi_finish_request();
        }
    }
}
