<?php

declare(strict_types=1);

namespace Till;

/** Carries requests by ext-curl. */
class Transport
{
    private ?\CurlHandle $curl = null; // kept, so that connections are

    public function __construct(private readonly float $connectTimeout = 5.0, private readonly ?string $caFile = null)
    {
    }

    /**
     * Makes one request and fills the try. With lines, the body of a 200 goes there piece by piece.
     *
     * @param array<string, string> $headers
     */
    public function send(Tried $t, string $method, string $url, #[\SensitiveParameter] array $headers, #[\SensitiveParameter] ?string $body, float $timeout, bool $fresh, ?callable $lines = null): void
    {
        $curl = $this->curl ??= curl_init();
        curl_reset($curl);
        $size = 0;
        $stopped = false;
        $sent = [];
        foreach ($headers as $name => $value) {
            $sent[] = "$name: $value";
        }
        curl_setopt_array($curl, [
            CURLOPT_URL => $url, CURLOPT_CUSTOMREQUEST => $method, CURLOPT_HTTPHEADER => array_merge($sent, ['Expect:']),
            CURLOPT_CONNECTTIMEOUT_MS => (int) ceil(min($this->connectTimeout, $timeout) * 1000),
            CURLOPT_FOLLOWLOCATION => false, CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS, CURLOPT_NOSIGNAL => true,
            // A connection that was kept may have died unseen; curl would send again by itself then. Nobody would count that try, and
            // a refusal of it would seem to say that nothing exists.
            CURLOPT_FRESH_CONNECT => $fresh,
            CURLOPT_HEADERFUNCTION => static function ($curl, string $line) use ($t): int {
                if (preg_match('/^HTTP\/[0-9.]+ /', $line) === 1) {
                    $t->headers = [];
                } elseif (count($parts = explode(':', $line, 2)) === 2) {
                    $t->headers[strtolower(trim($parts[0]))] ??= trim($parts[1]);
                }

                return strlen($line);
            },
            CURLOPT_WRITEFUNCTION => static function ($curl, string $part) use ($t, &$size, &$stopped, $lines): int {
                if ($lines !== null && curl_getinfo($curl, CURLINFO_RESPONSE_CODE) === 200) {
                    $stopped = !$lines($part);
                } else {
                    $t->body .= $part;
                    $stopped = ($size += strlen($part)) > Call::MAX_ANSWER;
                }

                return $stopped ? 0 : strlen($part);
            },
        ]);
        if ($lines === null) {
            curl_setopt($curl, CURLOPT_TIMEOUT_MS, max(1, (int) ceil($timeout * 1000)));
        } else { // as long as it takes, but no pause may be long
            curl_setopt_array($curl, [CURLOPT_LOW_SPEED_LIMIT => 1, CURLOPT_LOW_SPEED_TIME => max(1, (int) ceil($timeout))]);
        }
        if ($body !== null || !in_array($method, ['GET', 'DELETE'], true)) {
            curl_setopt($curl, CURLOPT_POSTFIELDS, (string) $body);
        }
        if ($this->caFile !== null) {
            curl_setopt($curl, CURLOPT_CAINFO, $this->caFile);
        }
        if (self::isLoopback((string) parse_url($url, PHP_URL_HOST))) {
            curl_setopt($curl, CURLOPT_PROXY, ''); // this machine is never asked through one
        }
        curl_exec($curl);
        $t->status = (int) curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        $error = curl_errno($curl);
        if ($error !== 0) {
            $this->failed($t, $error, $stopped, curl_getinfo($curl, CURLINFO_PRETRANSFER_TIME_T) > 0);
            $this->curl = null; // a handle that failed is not used again
        }
    }

    private function failed(Tried $t, int $error, bool $stopped, bool $connected): void
    {
        $t->reason = match (true) {
            $stopped => 'too_large',
            $error === CURLE_OPERATION_TIMEDOUT => 'timeout',
            in_array($error, [CURLE_SSL_PEER_CERTIFICATE, CURLE_SSL_CACERT, 77, 83, 90, 91], true) => 'certificate',
            in_array($error, [CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT], true) => 'unreachable',
            $t->status !== 0 => 'cut',
            in_array($error, [CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR], true) => 'reset',
            default => 'connection',
        };
        // Only where no connection was made, certainly not one byte was written.
        $t->sent = $connected;
    }

    public static function isLoopback(string $host): bool
    {
        $host = trim($host, '[]');
        if ($host === 'localhost') {
            return true;
        }
        $packed = @inet_pton($host);

        return $packed !== false && ($packed === inet_pton('::1') || strlen($packed) === 4 && ord($packed[0]) === 127);
    }
}
