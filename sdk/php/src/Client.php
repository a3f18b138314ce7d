<?php

declare(strict_types=1);

namespace Till;

/** Makes calls. One per program is enough. */
final class Client
{
    // The budget of repeats: when a service is ill, clients that all try five times keep it so.
    private const MAX_TOKENS = 100;
    private const REPEAT_COST = 5;
    private const TIMEOUT_COST = 10;

    public readonly Payments $payments;
    public readonly Payouts $payouts;
    public readonly Refunds $refunds;
    public readonly Checkouts $checkouts;
    public readonly Links $links;
    public readonly Events $events;
    public readonly WebhookEndpoints $webhooks;
    public readonly PaymentMethods $paymentMethods;
    public readonly Wallets $wallets;
    public readonly Transactions $transactions;
    public readonly ApiKeys $apiKeys;
    public readonly Sandbox $sandbox;

    public readonly string $base;
    public int $tokens = self::MAX_TOKENS;
    public bool $longPoll = true; // until the service says that it reads a payment at once only
    private ?int $skew = null;
    /** @var callable(float): void */
    public $sleep;
    /** @var callable(): float */
    public $random;
    /** @var string|callable(): string */
    private $key;
    private readonly Transport $transport;

    /**
     * BaseUrl is what you were given with your key; it ends in /v1. ApiKey is a text, or a function that is asked for each
     * call, so that a new key needs no restart, and once more after a 401.
     *
     * Deadline and tryTimeout are seconds: how long a call may take in all, and how long one request. Expect refuses keys of
     * the other mode: 'live' in production, 'test' elsewhere. PlainHttp allows http:// to other machines, where anybody
     * can read the key. OnTry is told about every request (method, route, status, reason, duration, request_id, delay), for
     * whoever measures; nothing is logged.
     */
    public function __construct(
        string $baseUrl,
        #[\SensitiveParameter] string|callable $apiKey,
        public readonly float $deadline = 30.0,
        public readonly float $tryTimeout = 10.0,
        public readonly int $tries = 5,
        private readonly string $expect = '',
        bool $plainHttp = false,
        private readonly ?\Closure $onTry = null,
        ?string $caFile = null,
        ?Transport $transport = null,
    ) {
        if ($deadline <= 0 || $tryTimeout <= 0 || $tries < 1) {
            throw new Mistake('till: a deadline and the tries are more than nothing');
        }
        if (!in_array($expect, ['', 'live', 'test'], true)) {
            throw new Mistake("till: what is expected is 'live' or 'test'");
        }
        $this->base = self::checked($baseUrl, $plainHttp);
        $this->key = $apiKey;
        $this->transport = $transport ?? new Transport(caFile: $caFile);
        $this->sleep = static function (float $seconds): void {
            usleep((int) ($seconds * 1_000_000));
        };
        $this->random = static fn (): float => random_int(0, 1 << 30) / (1 << 30);
        $this->payments = new Payments($this);
        $this->payouts = new Payouts($this);
        $this->refunds = new Refunds($this);
        $this->checkouts = new Checkouts($this);
        $this->links = new Links($this);
        $this->events = new Events($this);
        $this->webhooks = new WebhookEndpoints($this);
        $this->paymentMethods = new PaymentMethods($this);
        $this->wallets = new Wallets($this);
        $this->transactions = new Transactions($this);
        $this->apiKeys = new ApiKeys($this);
        $this->sandbox = new Sandbox($this);
    }

    /** Whose key this is, what it may do, and where the service is reached. */
    public function me(): Me
    {
        return $this->read(Me::class, new Call(Operations::GET_ME));
    }

    private static function checked(string $url, bool $plainHttp): string
    {
        $base = rtrim($url, '/');
        $parts = preg_match('/^[!-~]+$/D', $base) === 1 ? parse_url($base) : false;
        $host = is_array($parts) ? (string) ($parts['host'] ?? '') : '';
        if ($host === '' || isset($parts['user']) || str_contains($base, '@') || str_contains($base, '?') || str_contains($base, '#')) {
            throw new BadBaseUrl('till: the base address is an https:// URL, or http:// on this machine');
        }
        $scheme = strtolower($parts['scheme'] ?? '');
        if ($scheme !== 'https' && !($scheme === 'http' && ($plainHttp || Transport::isLoopback($host)))) {
            throw new BadBaseUrl('till: the base address is an https:// URL, or http:// on this machine');
        }

        return $base;
    }

    /** Asks for the key, and refuses one that cannot be right. */
    public function key(): string
    {
        $key = is_string($this->key) ? $this->key : ($this->key)();
        if (!is_string($key) || $key === '') {
            throw new NoKey('till: there is no API key');
        }
        if (preg_match('/^[!-~]+$/D', $key) !== 1) {
            throw new BadKey('till: the API key has characters that no key has');
        }
        if ($this->expect !== '' && !str_starts_with($key, 'till_' . $this->expect . '_')) {
            throw new WrongMode('till: a test key where a live one is expected, or the other way round');
        }

        return $key;
    }

    /** The key after a 401, '' if there is none now: its error would hide that an earlier try may have arrived. */
    public function keyAgain(): string
    {
        try {
            return $this->key();
        } catch (\Throwable) {
            return '';
        }
    }

    /** What a dump of the client shows: not the key. */
    public function __debugInfo(): array
    {
        return ['base' => $this->base, 'deadline' => $this->deadline, 'tryTimeout' => $this->tryTimeout, 'tries' => $this->tries];
    }

    /** How many seconds the service's clock is ahead of this machine's; null before an answer told it. */
    public function clockSkew(): ?int
    {
        return $this->skew;
    }

    /** Makes a call, and repeats it as the table of repeats allows. */
    public function call(Call $c): Tried
    {
        $end = self::now() + $this->deadline + $c->wait;
        [$before, $asked, $wait, $key] = [false, false, 0.0, $this->key()];
        for ($n = 1;; $n++) {
            $t = $this->attempt($c, $key, $wait, $end);
            $verdict = $t->judge($c->op, $before);
            if ($verdict === 'done') {
                $this->succeeded();

                return $t;
            }
            if ($before && $t->status === 404 && $c->op[1] === 'DELETE') {
                return $t; // the try without an answer did it
            }
            if ($t->status === 401 && !$asked) {
                $asked = true;
                $again = $this->keyAgain();
                if ($again !== '' && $again !== $key) {
                    $key = $again;
                    continue;
                }
            }
            $before = $before || $t->unanswered();
            if ($n >= $this->tries || !$t->repeatable($c->op)) {
                break;
            }
            $wait = Call::delay($n - 1, $t->retry_after, ($this->random)());
            if (self::now() + $wait > $end || !$this->spend($t->reason === 'timeout')) {
                break;
            }
            ($this->sleep)($wait);
        }
        if ($verdict === 'look') {
            throw new LookFirst($t->failure('refused', $c->key, $n), $t->failure('unclear', $c->key, $n));
        }
        throw $t->failure($verdict, $c->key, $n);
    }

    /** Makes one request. */
    public function attempt(Call $c, #[\SensitiveParameter] string $key, float $waited = 0.0, ?float $end = null, ?callable $lines = null): Tried
    {
        $began = self::now();
        $t = new Tried();
        $timeout = min($this->tryTimeout + $c->wait, ($end ?? INF) - $began);
        $headers = ['X-Api-Key' => $key, 'User-Agent' => 'till-sdk-php/' . Operations::VERSION . ' (api ' . Operations::API_VERSION . ')', 'Accept' => $c->accept];
        if ($c->body !== null) {
            $headers['Content-Type'] = 'application/json';
        }
        if ($timeout <= 0) {
            [$t->reason, $t->sent] = ['timeout', false];
        } else {
            $this->transport->send($t, $c->op[1], $c->url($this->base), $headers, $c->body, $timeout, $c->op[1] !== 'GET', $lines);
        }
        if ($t->status >= 400 && str_contains($t->body, $key)) {
            $t->body = ''; // it repeats the request, as some proxies do; its texts would bring the key into logs
        }
        $this->understand($t, $c->op, $lines !== null);
        if ($this->onTry !== null) {
            ($this->onTry)($c->op[1], $c->op[2], $t->status, $t->reason, self::now() - $began, $t->header('X-Request-Id'), $waited);
        }

        return $t;
    }

    /** Reads the body by its status. */
    private function understand(Tried $t, array $op, bool $stream): void
    {
        $date = Call::date($t->header('Date'));
        if ($date !== null) {
            $this->skew = $date - time();
        }
        $t->retry_after = Call::retryAfter($t->header('Retry-After'), $t->header('Date'), time());
        if ($t->reason !== '' || $stream && $t->status === 200) {
            return;
        }
        try {
            if ($t->status >= 300 && $t->status < 400) {
                $t->reason = 'redirect';
            } elseif ($t->status >= 400) {
                $p = Problem::fromJson(Json::parse($t->body));
                $t->problem = (string) $p->code !== '' ? $p : null;
            } elseif ($t->status !== 204) {
                $t->value = Json::parse($t->body);
                $t->reason = $op[1] === 'GET' && !self::answers($op, $t->value) ? 'not_json' : '';
            }
        } catch (\JsonException|\TypeError) {
            $t->reason = $t->status >= 400 ? '' : 'not_json';
        }
    }

    /**
     * Whether a value can be the answer to a read. JSON of something else, as a portal sends it, is none: taken for an empty list,
     * it would say that nothing exists.
     */
    private static function answers(array $op, mixed $value): bool
    {
        if ($op === Operations::GET_ME || str_ends_with($op[2], '}')) {
            $id = $op === Operations::GET_ME ? $value->key_id ?? null : $value->id ?? null;

            return is_string($id) && $id !== '';
        }

        return is_array($value->items ?? null);
    }

    /**
     * Makes a call and decodes its answer.
     *
     * @template A of Answer
     * @param class-string<A> $class
     * @return A
     */
    public function read(string $class, Call $c): Answer
    {
        return self::decode($class, $this->plain($c), $c);
    }

    /** Makes a call for somebody who cannot look by a key. */
    public function plain(Call $c): Tried
    {
        try {
            return $this->call($c);
        } catch (LookFirst $look) {
            throw $look->unknown;
        }
    }

    /** Reads the answer of a call. JSON of something else, as a portal sends it, is no answer. */
    public static function decode(string $class, Tried $t, Call $c): Answer
    {
        try {
            return $class::fromJson($t->value);
        } catch (\TypeError) {
            $t->reason = 'not_json';
        }
        throw $t->failure($t->judge($c->op, true), $c->key, 1);
    }

    private function spend(bool $timeout): bool
    {
        $cost = $timeout ? self::TIMEOUT_COST : self::REPEAT_COST;
        if ($this->tokens < $cost) {
            return false;
        }
        $this->tokens -= $cost;

        return true;
    }

    public function succeeded(): void
    {
        $this->tokens = min(self::MAX_TOKENS, $this->tokens + 1);
    }

    /** Seconds of a clock that is never set back. */
    public static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
