<?php

declare(strict_types=1);

namespace Till;

/** A request that may be a delivery: its bytes as they came. */
final class Request
{
    /** @var array<string, string> by their names in small letters */
    private array $headers = [];

    /** @param array<string, string|string[]> $headers */
    public function __construct(public readonly string $method, array $headers, public readonly string $body)
    {
        foreach ($headers as $name => $value) {
            $this->headers[strtolower((string) $name)] ??= is_array($value) ? (string) reset($value) : (string) $value;
        }
    }

    /** The request that PHP is answering. */
    public static function fromGlobals(): self
    {
        $headers = [];
        foreach ($_SERVER as $name => $value) {
            if (str_starts_with((string) $name, 'HTTP_')) {
                $headers[str_replace('_', '-', substr($name, 5))] = $value;
            }
        }
        $headers['content-length'] = $_SERVER['CONTENT_LENGTH'] ?? '';
        $in = fopen('php://input', 'rb');
        $body = (string) stream_get_contents($in, Webhook::MAX_DELIVERY + 1);
        fclose($in);

        return new self((string) ($_SERVER['REQUEST_METHOD'] ?? ''), $headers, $body);
    }

    public function header(string $name): string
    {
        return $this->headers[strtolower($name)] ?? '';
    }
}
