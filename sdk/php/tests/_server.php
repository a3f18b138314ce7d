<?php

declare(strict_types=1);

const KEY = 'till_test_abc_secretsecretsecret';
const PHONE = '242061234567';
const UUID = '6f1c1a52-0d0c-4d5a-9a62-51f9a6f0a3c1';
const SECRET = 'whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=';

/** A service that answers one text after the other, and the last one for ever. '' hangs up; a function gets the request and returns the text. */
final class Script
{
    public readonly string $url;
    private readonly int $pid;
    private readonly string $log;

    public function __construct(string|callable ...$answers)
    {
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        $this->url = 'http://' . stream_socket_get_name($listener, false) . '/v1';
        $this->log = tempnam(sys_get_temp_dir(), 'till');
        $this->pid = pcntl_fork();
        if ($this->pid !== 0) {
            fclose($listener);

            return;
        }
        try {
            for ($n = 0;; $n++) {
                $conn = @stream_socket_accept($listener, 600);
                if (!$conn) {
                    continue;
                }
                $request = self::request($conn);
                if ($request === null) {
                    $n--;
                    continue;
                }
                file_put_contents($this->log, json_encode($request) . "\n", FILE_APPEND);
                $answer = $answers[min($n, count($answers) - 1)];
                fwrite($conn, is_string($answer) ? $answer : $answer($request));
                fclose($conn);
            }
        } finally {
            posix_kill(getmypid(), SIGKILL);
        }
    }

    private static function request($conn): ?array
    {
        $first = explode(' ', (string) fgets($conn));
        if (count($first) < 3) {
            return null;
        }
        $headers = [];
        while (($line = trim((string) fgets($conn))) !== '') {
            [$name, $value] = explode(':', $line, 2);
            $headers[strtolower($name)] = trim($value);
        }
        $length = (int) ($headers['content-length'] ?? 0);

        return ['method' => $first[0], 'path' => $first[1], 'headers' => $headers, 'body' => $length > 0 ? stream_get_contents($conn, $length) : ''];
    }

    /** @return array[] what was asked */
    public function asked(): array
    {
        return array_map(static fn (string $line) => json_decode($line, true), file($this->log, FILE_IGNORE_NEW_LINES));
    }

    public function __destruct()
    {
        if ($this->pid > 0 && $this->pid !== getmypid()) {
            posix_kill($this->pid, SIGKILL);
            pcntl_waitpid($this->pid, $status);
            @unlink($this->log);
        }
    }
}

function says(int $status, string $body, string ...$headers): string
{
    return "HTTP/1.1 $status x\r\nConnection: close\r\n" . implode('', array_map(static fn ($h) => "$h\r\n", $headers)) . 'Content-Length: ' . strlen($body) . "\r\n\r\n" . $body;
}

function problem(int $status, string $code, string ...$headers): string
{
    return says($status, json_encode(['code' => $code, 'status' => $status, 'detail' => 'd', 'request_id' => 'r-1']), ...$headers);
}

function payment(string $status): string
{
    return json_encode(['id' => 'p-1', 'status' => $status, 'idempotency_key' => UUID, 'created_at' => '2026-11-15T05:51:53.123456Z', 'resolution' => ['state' => 'waiting']]);
}

/** A client that does not really wait; waited is what it would have. */
function client(Script $s, ?array &$waited = null, mixed ...$options): Till\Client
{
    static $kept = null; // a script goes with the last that names it
    $kept = $s;
    $waited = [];
    $c = new Till\Client($s->url, ...['apiKey' => KEY, ...$options]);
    $c->sleep = static function (float $seconds) use (&$waited): void {
        $waited[] = $seconds;
    };
    $c->random = static fn () => 0.0;

    return $c;
}

function event(string $id, string $kind, array $payment): string
{
    return json_encode(['id' => $id, 'type' => $kind, 'sequence' => 1, 'api_version' => '1.1', 'created_at' => '2026-11-15T05:51:53.123456Z', 'data' => ['payment' => $payment]]);
}

/** @return array<string, string> the headers of a delivery */
function signed(string $id, string $body): array
{
    $stamp = (string) time();

    return ['webhook-id' => $id, 'webhook-timestamp' => $stamp, 'webhook-signature' => 'v1,' . base64_encode(hash_hmac('sha256', "$id.$stamp.$body", base64_decode(substr(SECRET, 6)), true))];
}

/** A folder that goes with the program. */
function folder(): string
{
    $folder = sys_get_temp_dir() . '/till-php-' . bin2hex(random_bytes(6));
    mkdir($folder);
    $pid = getmypid();
    register_shutdown_function(static function () use ($folder, $pid): void {
        if (getmypid() === $pid) {
            exec('rm -rf ' . escapeshellarg($folder));
        }
    });

    return $folder;
}
