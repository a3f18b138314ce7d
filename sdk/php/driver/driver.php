<?php

declare(strict_types=1);

// Plays the shop for the conformance suite: reads one JSON command a line and writes one JSON result a line, as
// sdk/conformance/README.md says. The argument is the store: files or sqlite.
//
// PHP has no threads, so what goes on beside the commands (run, serve, buy) are processes that die with this one.

error_reporting(E_ALL);
set_error_handler(static function (int $level, string $text, string $file, int $line): bool {
    if ((error_reporting() & $level) === 0) {
        return false;
    }
    throw new ErrorException($text, 0, $level, $file, $line);
});
require __DIR__ . '/../src/autoload.php';
require __DIR__ . '/mutants.php';

use Till\Change;
use Till\Client;
use Till\Json;
use Till\Money;
use Till\Progress;
use Till\Store;
use Till\Store\FileStore;
use Till\Store\FileTx;
use Till\Store\PdoStore;
use Till\Teller;

/** A store with the shop's own notes beside it. */
interface Shop
{
    public function store(): Store;

    public function update(callable $work): void;

    public function act(mixed $tx, string $order, string $what): void;

    /** Notes something by itself. */
    public function book(string $order, string $what): void;

    /** @return array<string, string[]> */
    public function acted(): array;
}

final class FileShop implements Shop
{
    private FileStore $store;

    public function __construct(string $folder)
    {
        $this->store = new FileStore($folder);
    }

    public function store(): Store
    {
        return $this->store;
    }

    public function update(callable $work): void
    {
        $this->store->update(static fn (FileTx $tx) => $work());
    }

    public function act(mixed $tx, string $order, string $what): void
    {
        $tx->set($order, ltrim($tx->get($order) . "\t" . $what, "\t"));
    }

    public function book(string $order, string $what): void
    {
        $this->store->update(fn (FileTx $tx) => $this->act($tx, $order, $what));
    }

    public function acted(): array
    {
        return array_map(static fn (string $what) => explode("\t", $what), $this->store->all());
    }
}

final class SqliteShop implements Shop
{
    private PDO $pdo;

    public function __construct(string $folder)
    {
        @mkdir($folder, 0o700, true);
        $this->pdo = new PDO("sqlite:$folder/shop.db", options: [PDO::ATTR_TIMEOUT => 10]);
        $this->pdo->exec('PRAGMA journal_mode = WAL');
        $this->pdo->exec('PRAGMA synchronous = NORMAL'); // a kill loses no commit without the sync, only a loss of power does
        $this->pdo->exec('CREATE TABLE IF NOT EXISTS acts (n INTEGER PRIMARY KEY, order_id TEXT, what TEXT)');
    }

    public function store(): Store
    {
        return new PdoStore($this->pdo);
    }

    public function update(callable $work): void
    {
        $this->pdo->exec('BEGIN IMMEDIATE');
        try {
            $work();
        } catch (Throwable $e) {
            $this->pdo->exec('ROLLBACK');
            throw $e;
        }
        $this->pdo->exec('COMMIT');
    }

    public function act(mixed $tx, string $order, string $what): void
    {
        $tx->prepare('INSERT INTO acts (order_id, what) VALUES (?, ?)')->execute([$order, $what]);
    }

    public function book(string $order, string $what): void
    {
        $this->act($this->pdo, $order, $what);
    }

    public function acted(): array
    {
        $out = [];
        foreach ($this->pdo->query('SELECT order_id, what FROM acts ORDER BY n')->fetchAll(PDO::FETCH_NUM) as [$order, $what]) {
            $out[$order][] = $what;
        }

        return $out;
    }
}

final class Driver
{
    private array $made; // the command new
    private Shop $shop;
    private Client $client;
    private Teller $teller;
    private string $mutant = '';
    private string $notes; // what processes share: the point at which to die, how often the function fails
    private int $main;
    private int $server = 0;
    private bool $givesBack = false; // the function gives back what was paid twice
    private array $booked = []; // refunds, by order and amount, as one should not

    public function __construct(private readonly string $class)
    {
        $this->main = getmypid();
        $this->notes = sys_get_temp_dir() . '/till-driver-' . $this->main;
    }

    /** Ends the whole program at once if it is to die here. */
    private function crash(string $point): void
    {
        if (@file_get_contents($this->notes . '-armed') === $point) {
            posix_kill($this->main, SIGKILL);
            sleep(60);
        }
    }

    public function new(array $c): array
    {
        $this->made = $c;
        foreach (['-armed', '-fails'] as $name) {
            @unlink($this->notes . $name);
        }
        $this->open();
        $this->shop->store()->install();

        return [];
    }

    /** Makes everything; in a new process again, because connections cannot be shared. */
    private function open(): void
    {
        $c = $this->made;
        $options = (array) ($c['options'] ?? []);
        $seconds = static fn (string $name, float $otherwise): float => isset($options[$name]) ? $options[$name] / 1000 : $otherwise;
        $this->mutant = $c['mutant'] ?? '';
        $this->givesBack = !empty($options['give_back']);
        if ($this->mutant !== '' && !in_array($this->mutant, MUTANTS, true)) {
            throw new LogicException('there is no such mutant');
        }
        $folder = $this->mutant === 'key_not_stored' ? $c['state'] . '/forgotten-' . $this->main : $c['state'];
        $this->shop = new $this->class($folder);
        $key = static function () use ($c, $seconds): string {
            usleep((int) ($seconds('key_wait', 0) * 1e6));

            return trim((string) file_get_contents($c['key_file']));
        };
        $this->client = new Client(
            $c['base_url'],
            $key,
            deadline: $seconds('deadline', 20),
            tryTimeout: $seconds('try_timeout', 3),
            tries: $options['tries'] ?? 5,
            expect: $c['expect'] ?? '',
            transport: new MutantTransport($this->crash(...), $this->mutant),
        );
        $this->teller = new Teller(
            $this->client,
            new MutantStore($this->shop->store(), $this->crash(...), $this->mutant),
            $this->onChange(...),
            paymentUntil: $seconds('send_until', 600),
            payoutUntil: $seconds('send_until', 86_400),
            lookAfter: $seconds('look_after', 60),
            openAfter: $seconds('open_after', 120),
            clock: static fn () => microtime(true) + $seconds('clock', 0),
            foreign: !empty($options['foreign']) || $this->mutant === 'foreign_handed_over' || asksAlone($this->mutant),
            fromStart: empty($options['from_end']) || $this->mutant === 'history_shipped',
        );
    }

    /** Starts a process that dies with this one. */
    private function fork(callable $work): int
    {
        $parent = getmypid();
        $pid = pcntl_fork();
        if ($pid !== 0) {
            return $pid;
        }
        // PR_SET_PDEATHSIG: this process dies with its parent.
        FFI::cdef('int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long);')->prctl(1, SIGKILL, 0, 0, 0);
        if (posix_getppid() !== $parent) {
            exit(1);
        }
        try {
            $this->open();
            $work();
            $code = 0;
        } catch (Throwable $e) {
            fwrite(STDERR, $e . "\n");
            $code = 1;
        }
        posix_kill(getmypid(), $code === 0 ? SIGKILL : SIGTERM); // without what PHP would do at the end
        exit($code);
    }

    public function collect(array $c): array
    {
        $amount = match (true) {
            !isset($c['major']) => Money::minor($c['value'], $c['currency']),
            $this->mutant === 'float_amount' => floatedMajor($c),
            default => Money::major($c['major'], $c['currency']),
        };
        $charge = null;
        if (isset($c['quantity'])) {
            $quantity = $this->mutant === 'float_amount' ? sprintf('%.6f', (float) $c['quantity']) : $c['quantity'];
            $charge = new Till\CreatePaymentCharge([new Till\CreatePaymentChargeItem('thing', $quantity, '0', '0')]);
        }
        $wish = ['order' => $c['order'], 'method' => $c['method'], 'country' => $c['country'] ?? '', 'amount' => $amount, 'phone' => $c['phone']];
        if ($c['do'] === 'payout') {
            $this->shop->update(fn () => $this->teller->payOut(...$wish));
        } else {
            $this->shop->update(fn () => $this->teller->collect(...$wish, metadata: $c['metadata'] ?? null, charge: $charge));
        }
        $this->crash('after_write');

        return [];
    }

    public function payout(array $c): array
    {
        return $this->collect($c);
    }

    /** Writes a wish to give a payment back; without a value, all that is left. */
    public function refund(array $c): array
    {
        $amount = ($c['value'] ?? '') === '' ? null : Money::minor($c['value'], $c['currency']);
        $this->shop->update(fn () => $this->teller->refund($c['order'], $amount, $c['reason'] ?? ''));
        $this->crash('after_write');

        return [];
    }

    /** Writes a wish to be paid on a page. With a phone, no other one may pay. */
    public function checkout(array $c): array
    {
        $wish = ['order' => $c['order'], 'amount' => Money::minor($c['value'], $c['currency']), 'phone' => $c['phone'] ?? '', 'phone_fixed' => isset($c['phone']), 'return_url' => $c['return_url'] ?? ''];
        $this->shop->update(fn () => $this->teller->checkout(...$wish));
        $this->crash('after_write');

        return [];
    }

    /** Writes and makes pages for many orders, as customers do who go to the till. */
    public function open_checkouts(array $c): array
    {
        return $this->each($c, function (int $n, array $one): void {
            try {
                $this->checkout($one);
            } catch (Till\AlreadyPaid) {
                return;
            }
            $this->teller->sendCheckout($one['order']);
        });
    }

    /** Verifies the way back of a customer, with what is kept with the order. */
    public function come_back(array $c): array
    {
        $p = $this->teller->sendCheckout($c['order']);
        parse_str($c['query'], $query);

        return ['state' => Till\Returned::verify($p->return_secret, $p->id, $query)];
    }

    /** What the shop notes of a checkout. */
    private static function onPage(Change $c): string
    {
        return match (true) {
            $c->paid() && $c->alreadyPaid => 'give back',
            $c->paid() => $c->late ? 'paid late' : 'paid',
            $c->overpaid() => 'paid twice',
            $c->otherAmount() => 'other amount',
            default => explode('.', $c->kind)[1],
        };
    }

    /**
     * Makes the mistakes about asks: ships on each that succeeds and not on the checkout, takes one that fails for the end of
     * the order, or forgets what was paid twice. True if the change is not heard.
     */
    private function misheard(Change $c): bool
    {
        if ($this->mutant === 'overpaid_forgotten') {
            return $c->overpaid();
        }
        if (!asksAlone($this->mutant)) {
            return false;
        }
        $ships = $this->mutant === 'ask_shipped';
        if ($c->checkout !== null) {
            return $c->paid() && $ships;
        }
        $c->order = $c->order === '' ? $c->reference : $c->order;

        return $c->paid() && !$ships || $c->failed() && $ships;
    }

    /** Whether a mistake keeps the shop from booking a refund. */
    private function misbooked(Change $c): bool
    {
        if ($this->mutant === 'refund_booked_on_202') {
            return true;
        }
        $sum = $c->order . ' ' . $c->refund->amount->value;
        $booked = isset($this->booked[$sum]);
        $this->booked[$sum] = true;

        return $booked && $this->mutant === 'refund_booked_by_amount';
    }

    /** The shop's one function. */
    private function onChange(Change $c, mixed $tx): void
    {
        if ($this->misheard($c)) {
            return;
        }
        $order = $c->order === '' ? "foreign $c->reference" : $c->order;
        if ($this->fails()) {
            throw new RuntimeException("the shop's function fails");
        }
        $what = match (true) {
            $c->checkout !== null => self::onPage($c),
            $c->paid() => $c->alreadyPaid ? 'give back' : 'paid',
            $c->failed() => 'failed',
            $c->takenBack() => 'taken back',
            $c->paidOut() => 'paid out',
            $c->payoutFailed() => 'payout failed',
            $c->refunded() => sprintf('refunded %s left %s', $c->refund->amount->value, $c->left->value ?? '?'),
            $c->refundFailed() => 'refund failed',
            $c->refused(), $c->lapsed(), $c->lost() => implode(' ', [explode('.', $c->kind)[1], ...array_column($c->errors, 'pointer')]),
            default => str_replace('.', ' ', $c->kind),
        };
        if ($c->lapsed() && $this->mutant === 'lapse_forgotten') {
            return;
        }
        if ($c->refunded() && $this->misbooked($c)) {
            return;
        }
        $this->crash('in_function');
        if ($this->givesBack && ($c->alreadyPaid || $c->overpaid())) {
            $this->teller->refund($c->order, reason: 'duplicate', payment: $c->extra());
        }
        if ($this->mutant === 'function_outside') {
            file_put_contents($this->made['state'] . '/outside', "$order\t$what\n", FILE_APPEND);
        } else {
            $this->shop->act($tx, $order, $what);
        }
    }

    /** Whether the function is still to fail. */
    private function fails(): bool
    {
        $file = fopen($this->notes . '-fails', 'c+');
        flock($file, LOCK_EX);
        $n = (int) stream_get_contents($file);
        ftruncate($file, 0);
        rewind($file);
        fwrite($file, (string) max(0, $n - 1));
        fclose($file);

        return $n > 0;
    }

    public function send(array $c): array
    {
        if (($c['kind'] ?? '') === 'refund') {
            $p = $this->teller->sendRefund($c['order']);
            if ($this->mutant === 'refund_booked_on_202' && $p->subject !== null) {
                $this->shop->book($c['order'], 'refunded ' . $p->subject->amount->value);
            }

            return $this->sent($p);
        }
        if (($c['kind'] ?? '') === 'checkout') {
            $p = $this->teller->sendCheckout($c['order']);

            return ['url' => $p->url, 'page' => $p->url !== '' && $p->return_secret !== ''] + $this->sent($p);
        }

        return $this->sent(($c['kind'] ?? '') === 'payout' ? $this->teller->sendPayOut($c['order']) : $this->teller->send($c['order']));
    }

    public function resend(array $c): array
    {
        return $this->sent($this->teller->resend($c['order']));
    }

    private function sent(Progress $p): array
    {
        return ['state' => $p->state, 'replayed' => $p->replayed] + ($p->error === null ? [] : ['why' => told($p->error)['error']]);
    }

    public function withdraw(array $c): array
    {
        $this->teller->withdraw($c['order']);

        return [];
    }

    public function abandon(array $c): array
    {
        $this->teller->abandon($c['order']);

        return [];
    }

    public function wait(array $c): array
    {
        $seconds = (float) (string) ($c['seconds'] ?? 0);

        $one = match ($c['kind'] ?? '') {
            'payout' => $this->teller->waitPayOut($c['order'], $seconds),
            'refund' => $this->teller->waitRefund($c['order'], $seconds),
            'checkout' => $this->teller->waitCheckout($c['order'], $seconds),
            default => $this->teller->wait($c['order'], $seconds),
        };

        return ['status' => $one->status ?? $one->state];
    }

    public function sweep(array $c): array
    {
        $error = [];
        try {
            $r = $this->teller->sweep();
        } catch (Till\SweepFailed $e) {
            [$r, $error] = [$e->report, told($e)];
        }
        $attention = new stdClass();
        foreach ($r->attention as $a) {
            $attention->{$a->order} = $a->state;
        }

        return $error + ['sent' => $r->sent, 'waiting' => $r->waiting, 'applied' => $r->applied, 'read' => $r->read, 'attention' => $attention];
    }

    /** Writes and sends many orders, eight at a time. */
    public function buy(array $c): array
    {
        return $this->each($c, function (int $n, array $one): void {
            try {
                $this->collect(['do' => 'collect'] + $one);
            } catch (Till\AlreadyPaid) {
                return; // a customer who clicks again
            }
            $this->teller->send($one['order']);
        });
    }

    /** Writes and sends refunds of every second order: all of it, or a part. One that was written before is not written again. */
    public function give_back(array $c): array
    {
        return $this->each($c, function (int $n, array $one): void {
            if ($n % 2 !== 0) {
                return;
            }
            if ($this->shop->store()->newest('refund', $one['order']) === null) {
                $this->refund(['value' => $n % 4 === 0 ? '' : $one['value']] + $one);
            }
            $this->teller->sendRefund($one['order']);
        });
    }

    /** Does something for many orders, eight at a time. */
    private function each(array $c, callable $work): array
    {
        $workers = [];
        for ($w = 0; $w < 8; $w++) {
            $workers[] = $this->fork(function () use ($c, $w, $work): void {
                for ($n = $w; $n < $c['n']; $n += 8) {
                    $work($c['from'] + $n, ['order' => 'b-' . ($c['from'] + $n)] + $c);
                }
            });
        }
        $failed = 0;
        foreach ($workers as $pid) {
            pcntl_waitpid($pid, $status);
            $failed += pcntl_wifsignaled($status) && pcntl_wtermsig($status) === SIGKILL ? 0 : 1;
        }

        return $failed === 0 ? [] : ['error' => 'other', 'text' => "$failed workers failed"];
    }

    public function run(array $c): array
    {
        $this->fork(fn () => $this->teller->run(static fn () => true));

        return [];
    }

    public function serve(array $c): array
    {
        if ($this->server !== 0) {
            posix_kill($this->server, SIGKILL);
            pcntl_waitpid($this->server, $status);
        }
        $listener = null;
        for ($n = 0; $n < 100 && !$listener; $n++) { // what was killed may still hold the address for a moment
            $listener = @stream_socket_server('tcp://' . $c['addr'], $code, $text, STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, stream_context_create(['socket' => ['backlog' => 128]]));
            $listener ?: usleep(20_000);
        }
        if (!$listener) {
            throw new RuntimeException($text);
        }
        $this->server = $this->fork(function () use ($listener, $c): void {
            pcntl_signal(SIGCHLD, SIG_IGN);
            while (true) {
                $conn = @stream_socket_accept($listener, 60);
                if ($conn) {
                    $this->fork(fn () => $this->answer($conn, $c['secrets']));
                    fclose($conn);
                }
            }
        });
        fclose($listener);

        return [];
    }

    /** @param resource $conn */
    private function answer($conn, array $secrets): void
    {
        fgets($conn);
        $headers = [];
        while (($line = trim((string) fgets($conn))) !== '') {
            [$name, $value] = explode(':', $line, 2);
            $headers[strtolower($name)] = trim($value);
        }
        $length = (int) ($headers['content-length'] ?? 0);
        $body = $length > 0 ? (string) stream_get_contents($conn, $length) : '';
        $reply = $this->teller->receive($secrets, mutated($this->mutant, $secrets, $headers, $body));
        if ($reply->status === 500 && !str_contains((string) $reply->error?->getMessage(), "the shop's function")) {
            fwrite(STDERR, $reply->error . "\n");
        }
        fwrite($conn, "HTTP/1.1 $reply->status x\r\nConnection: close\r\n" . ($reply->status === 204 ? '' : 'Content-Length: ' . strlen($reply->body) . "\r\n") . "\r\n" . $reply->body);
        stream_socket_shutdown($conn, STREAM_SHUT_WR);
        fread($conn, 1); // until the other side has it
    }

    public function crash_at(array $c): array
    {
        file_put_contents($this->notes . '-armed', $c['point']);

        return [];
    }

    public function fail(array $c): array
    {
        file_put_contents($this->notes . '-fails', (string) $c['n']);

        return [];
    }

    public function acted(array $c): array
    {
        $acted = $this->shop->acted();
        foreach (explode("\n", (string) @file_get_contents($this->made['state'] . '/outside')) as $line) {
            if ($line !== '') {
                [$order, $what] = explode("\t", $line);
                $acted[$order][] = $what;
            }
        }

        return ['acted' => (object) $acted];
    }

    public function list(array $c): array
    {
        $order = ($c['kind'] ?? '') === 'asc' ? 'asc' : '';
        [$ids, $twice] = [[], 0];
        foreach ($this->mutant === 'offset_paging' ? byOffset($this->client, $c) : $this->client->payments->all(status: $c['status'] ?? '', order: $order) as $p) {
            $twice += isset($ids[$p->id]) ? 1 : 0;
            $ids[$p->id] = true;
            if (($c['n'] ?? 0) > 0 && count($ids) % $c['n'] === 0) {
                usleep(20_000); // somebody reads slowly
            }
        }

        return ['count' => count($ids), 'twice' => $twice, 'ids' => array_keys($ids)];
    }

    public function cancel(array $c): array
    {
        if (($c['kind'] ?? '') === 'checkout') {
            return ['status' => $this->client->checkouts->cancel($this->teller->sendCheckout($c['order'])->id)->state];
        }
        try {
            $payout = $this->teller->waitPayOut($c['order'], 0);
        } catch (Till\StillOpen) {
            $payout = $this->client->payouts->page(reference: $c['order'])->items[0];
        }

        return ['status' => $this->client->payouts->cancel($payout->id)->status];
    }

    public function get(array $c): array
    {
        $p = $this->client->payments->get($c['id']);

        return ['status' => $p->status, 'raw' => $p->raw];
    }

    public function create_key(array $c): array
    {
        $this->client->apiKeys->create(new Till\CreateApiKey(name: 'suite'));

        return [];
    }
}

/** Puts an error into one word, with its code. */
function told(Throwable $e): array
{
    $words = [
        Till\AttemptOpen::class => 'attempt_open', Till\AlreadyPaid::class => 'already_paid', Till\NotPaid::class => 'not_paid', Till\InvalidWish::class => 'invalid', Till\MoneyError::class => 'invalid',
        Till\StillOpen::class => 'still_open', Till\MayArrive::class => 'may_have_arrived', Till\WrongMode::class => 'wrong_mode', Till\Refused::class => 'refused',
        Till\Unavailable::class => 'unavailable', Till\Unclear::class => 'unclear',
    ];
    $causes = $e instanceof Till\SweepFailed ? $e->errors : [$e];
    $out = ['error' => 'other'];
    foreach ($words as $class => $word) {
        if (array_filter($causes, static fn (Throwable $cause) => $cause instanceof $class)) {
            $out['error'] = $word;
            break;
        }
    }
    foreach ($causes as $cause) {
        if ($cause instanceof Till\CallError) {
            $out += ['code' => $cause->code, 'status' => $cause->status, 'retry_after' => (int) $cause->retry_after, 'tries' => $cause->tries, 'detail' => $cause->detail, 'pointers' => array_column($cause->errors, 'pointer')];
        } elseif ($cause instanceof Till\InvalidWish) {
            $out['member'] = $cause->member;
        } elseif ($cause instanceof Till\ReturnError) {
            $out['error'] = $cause->word;
        }
    }

    return $out + ['text' => $e->getMessage()];
}

$driver = new Driver(['files' => FileShop::class, 'sqlite' => SqliteShop::class][$argv[1]]);
while (($line = fgets(STDIN)) !== false) {
    $c = (array) Json::parse($line);
    try {
        $result = is_callable([$driver, $c['do']]) ? $driver->{$c['do']}($c) : ['error' => 'no such command'];
    } catch (Throwable $e) {
        $result = told($e);
    }
    fwrite(STDOUT, Json::render((object) $result) . "\n");
}
