<?php

declare(strict_types=1);

// The teller: wishes, webhooks, news, sweeps.

require_once __DIR__ . '/_server.php';

use Till\Change;
use Till\Client;
use Till\Money;
use Till\Request;
use Till\Row;
use Till\Store\FileStore;
use Till\Store\FileTx;
use Till\Teller;

/** A shop with its little service, which takes payments, shows them as its file says, and knows no log. */
final class World
{
    public readonly Script $service;
    public readonly FileStore $store;
    public readonly Teller $teller;
    /** @var Change[] */
    public array $changes = [];
    public ?Throwable $fails = null;
    private readonly string $file;

    public function __construct(int $skew = 0, mixed ...$options)
    {
        $this->file = folder() . '/payments';
        $file = $this->file;
        $this->service = new Script(function (array $r) use ($file, $skew): string {
            $date = 'Date: ' . gmdate('D, d M Y H:i:s \G\M\T', time() + $skew);
            $payments = json_decode((string) @file_get_contents($file), true) ?? [];
            if ($r['method'] === 'POST') {
                $wish = json_decode($r['body'], true);
                $key = $wish['idempotency_key'];
                $payments[$key] ??= ['id' => 'p-' . substr($key, 0, 8), 'status' => 'pending', 'resolution' => ['state' => 'waiting']] + $wish;
                file_put_contents($file, json_encode($payments));

                return says(202, json_encode($payments[$key]), $date);
            }
            if (str_contains($r['path'], 'wait=')) {
                return problem(400, 'invalid_parameter', $date);
            }
            foreach ($payments as $p) {
                if (str_ends_with($r['path'], $p['id'])) {
                    return says(200, json_encode($p), $date);
                }
            }

            return problem(404, 'payment_not_found', $date);
        });
        $this->store = new FileStore(folder());
        $this->teller = new Teller(new Client($this->service->url, KEY), $this->store, function (Change $c): void {
            $this->changes[] = $c;
            if ($this->fails) {
                throw $this->fails;
            }
        }, ...$options);
    }

    public function collect(mixed ...$changes): void
    {
        $wish = $changes + ['order' => 'o-1', 'method' => 'mtn_momo', 'country' => 'CG', 'amount' => Money::minor('5000', 'XAF'), 'phone' => PHONE, 'metadata' => ['cart' => 88]];
        $this->store->update(fn (FileTx $tx) => $this->teller->collect(...$wish));
    }

    public function posts(): int
    {
        return count(array_filter($this->service->asked(), static fn (array $r) => $r['method'] === 'POST'));
    }

    public function payments(?array $set = null): array
    {
        if ($set !== null) {
            file_put_contents($this->file, json_encode($set));
        }

        return json_decode(file_get_contents($this->file), true);
    }

    public function deliver(string $id, string $kind, array $payment, ?callable $change = null, string $method = 'POST', ?string $body = null): Till\Reply
    {
        $text = event($id, $kind, $payment);
        $headers = signed($id, $text);
        $change && $change($headers);

        return $this->teller->receive(SECRET, new Request($method, $headers, $body ?? $text));
    }
}

test('collect, send, wait', function (): void {
    $w = new World();
    $w->collect();
    same(0, $w->posts());
    $p = $w->teller->send('o-1');
    same(['taken', $p->id], [$p->state, $p->subject->id]);
    same(['taken', 1], [$w->teller->send('o-1')->state, $w->posts()]);
    $w->payments(array_map(static fn (array $p) => ['status' => 'success'] + $p, $w->payments()));
    same('success', $w->teller->wait('o-1', 1)->status);
    same([1, true, 'o-1', 1], [count($w->changes), $w->changes[0]->paid(), $w->changes[0]->order, $w->changes[0]->attempt]);
    throws(Till\AlreadyPaid::class, fn () => $w->collect());
    same(['o-1', ['cart' => 88]], [array_values($w->payments())[0]['reference'], array_values($w->payments())[0]['metadata']]);
});

test('an order may be a number', function (): void {
    $w = new World();
    $w->collect(order: 1042);
    same('taken', $w->teller->send(1042)->state);
    $w->payments(array_map(static fn (array $p) => ['status' => 'success'] + $p, $w->payments()));
    same('success', $w->teller->wait(1042, 1)->status);
    same(['1042', '1042'], [$w->changes[0]->order, array_values($w->payments())[0]['reference']]);
    $w->store->update(fn (FileTx $tx) => $w->teller->refund(1042));
    same('1042', $w->store->newest('refund', '1042')->order);
});

test('a double click is one payment', function (): void {
    $w = new World();
    $w->collect();
    $w->collect();
    same(true, throws(Till\AttemptOpen::class, fn () => $w->collect(phone: '242061111111'))->expires_at > time() * 1000);
    $w->teller->send('o-1');
    $w->collect();
    same(1, $w->posts());
});

test('wishes that the service would refuse are not written', function (): void {
    $w = new World();
    foreach ([
        ['order', ['order' => '']], ['order', ['order' => str_repeat('é', 65)]], ['method', ['method' => '']], ['amount', ['amount' => Money::minor('50.00', 'KES')]],
        ['amount', ['amount' => Money::minor('0', 'KES')]], ['phone', ['phone' => '+242061234567']], ['phone', ['phone' => '٢٤٢']], ['metadata', ['metadata' => ['f' => NAN]]],
        ['metadata', ['metadata' => ['f' => "\xff"]]], ['description', ['description' => str_repeat('é', 256)]],
        ['charge', ['charge' => new Till\CreatePaymentCharge([new Till\CreatePaymentChargeItem('a', 1.5, '1', '1')])]],
    ] as [$member, $change]) {
        same($member, throws(Till\InvalidWish::class, fn () => $w->collect(...$change), $member)->member);
    }
    throws(Till\NoAttempt::class, fn () => $w->teller->send('o-1'));
});

test('wishes to be paid on a page that the service would refuse are not written, either', function (): void {
    $w = new World();
    foreach ([
        ['order', ['order' => str_repeat('é', 65)]], ['amount', ['amount' => Money::minor('0', 'XAF')]], ['phone', ['phone_fixed' => true]], ['phone', ['phone' => '+242061234567']],
        ['description', ['description' => str_repeat('é', 256)]], ['metadata', ['metadata' => ['f' => NAN]]],
    ] as [$member, $change]) {
        $wish = $change + ['order' => 'o-1', 'amount' => Money::minor('5000', 'XAF')];
        same($member, throws(Till\InvalidWish::class, fn () => $w->store->update(fn (FileTx $tx) => $w->teller->checkout(...$wish)), $member)->member);
    }
    throws(Till\NoAttempt::class, fn () => $w->teller->sendCheckout('o-1'));
});

test('a payment that this store did not make is no news, unless it is asked for', function (): void {
    foreach ([false, true] as $foreign) {
        $w = new World(foreign: $foreign);
        same(204, $w->deliver('e-1', 'payment.success', ['id' => 'p-1', 'status' => 'success', 'idempotency_key' => 'k'])->status);
        same((int) $foreign, count($w->changes));
    }
});

test('webhook answers', function (): void {
    $w = new World(foreign: true);
    $p = ['id' => 'p-1', 'status' => 'success', 'idempotency_key' => 'k', 'reference' => 'other shop'];
    foreach ([
        'good' => [fn () => $w->deliver('e-1', 'payment.success', $p), 204, ''],
        'again' => [fn () => $w->deliver('e-1', 'payment.success', $p), 204, ''],
        'no post' => [fn () => $w->deliver('e-1', 'payment.success', $p, method: 'GET'), 405, 'post'],
        'no header' => [fn () => $w->deliver('e-1', 'payment.success', $p, function (array &$h): void {
            unset($h['webhook-id']);
        }), 400, 'missing_header'],
        'forged' => [fn () => $w->deliver('e-1', 'payment.success', $p, body: '{}'), 400, 'bad_signature'],
        'body was read' => [fn () => $w->deliver('e-1', 'payment.success', $p, function (array &$h): void {
            $h['Content-Length'] = '9';
        }, body: ''), 500, 'body_was_read: put the Till webhook before what parses bodies'],
    ] as $name => [$deliver, $status, $text]) {
        $reply = $deliver();
        same([$status, $text], [$reply->status, $reply->body], $name);
    }
    same([1, '', 'other shop'], [count($w->changes), $w->changes[0]->order, $w->changes[0]->reference]);
    $w->fails = new LogicException('no');
    $reply = $w->deliver('e-2', 'payment.success', ['id' => 'p-2'] + $p);
    same([500, $w->fails], [$reply->status, $reply->error]);
    same(500, $w->teller->receive('', new Request('POST', signed('e', '{}'), '{}'))->status);
});

test('the clock hint', function (): void {
    $w = new World(-600, clock: static fn () => microtime(true) + 600);
    $p = ['id' => 'p-1', 'status' => 'success', 'idempotency_key' => 'k'];
    same('too_old', $w->deliver('e-1', 'payment.success', $p)->body);
    $w->collect();
    $w->teller->send('o-1');
    same(1, preg_match("/^too_old: this machine's clock is (599|600|601) s ahead of the service's$/", $w->deliver('e-1', 'payment.success', $p)->body));
});

test('other events and progress', function (): void {
    $others = $progress = [];
    $w = new World(0, onOther: function (Till\Event $e) use (&$others): void {
        $others[] = $e->type;
    }, onProgress: function (Change $c) use (&$progress): void {
        $progress[] = $c->kind;
    }, foreign: true);
    $p = ['id' => 'p-1', 'status' => 'processing', 'idempotency_key' => 'k'];
    foreach ([['e-1', 'payment.pending'], ['e-1', 'payment.pending'], ['e-2', 'payment.processing'], ['e-9', 'payment.pending'], ['e-3', 'payment.updated'],
        ['e-3', 'payment.updated'], ['e-4', 'payment.updated'], ['e-5', 'moon.rises'], ['e-6', 'payment.blessed'], ['e-6', 'payment.blessed']] as [$id, $kind]) {
        same(204, $w->deliver($id, $kind, $p)->status);
    }
    same(['payment.pending', 'payment.processing'], $progress);
    same(['payment.updated', 'payment.updated', 'moon.rises', 'payment.blessed'], $others);
    same([], $w->changes);
});

test('another life', function (): void {
    foreach ([['success', 'success', 'payment.success'], ['success', 'failed', 'payment.success'], ['failed', 'failed', 'payment.failed'],
        ['failed', 'success', 'payment.failed payment.success'], ['expired', 'late_success', 'payment.expired payment.late_success'], ['reversed', 'success', 'payment.reversed']] as [$first, $then, $want]) {
        $w = new World();
        $w->collect();
        $w->teller->send('o-1');
        $p = array_values($w->payments())[0];
        $w->deliver('e-1', "payment.$first", $p);
        for ($n = 0; $n < 2; $n++) {
            $w->deliver('e-2', 'payment.pending', ['id' => 'p-again', 'idempotency_key' => $p['idempotency_key']]);
            $w->deliver('e-3', "payment.$then", ['id' => 'p-again', 'idempotency_key' => $p['idempotency_key']]);
        }
        same($want, implode(' ', array_map(static fn (Change $c) => $c->kind, $w->changes)));
    }
});

test('a payment that the service does not know any more is lost', function (): void {
    $w = new World(0, openAfter: -1.0);
    $w->collect();
    $w->teller->send('o-1');
    $w->payments([]);
    $e = throws(Till\SweepFailed::class, fn () => $w->teller->sweep()); // there is no log here
    same([Row::LOST, 1], [$e->report->attention[0]->state, $w->posts()]);
    throws(Till\AttemptOpen::class, fn () => $w->collect(phone: '242061111111'));
    same(['taken', 2], [$w->teller->resend('o-1')->state, $w->posts()]);
    throws(Till\NotLost::class, fn () => $w->teller->resend('o-1'));
});

/** A store in which news comes between a read that finds nothing and the lapse of its wish. */
final class HastyPdo extends Till\Store\PdoStore
{
    public function apply(string $subject, string $kind, string $key, callable $fn): void
    {
        $this->settle(new Till\Settlement($key, state: Row::TAKEN, remote_id: 'p-1'));
        parent::apply($subject, $kind, $key, $fn);
    }
}

test('a wish is not said to have lapsed if news came meanwhile', function (): void {
    $s = new Script(says(200, '{"items":[],"total":0,"limit":50,"offset":0}'));
    $pdo = new PDO('sqlite::memory:');
    $store = new HastyPdo($pdo);
    $store->install();
    $now = microtime(true);
    $teller = new Teller(client($s), $store, static fn (Change $c) => throw new LogicException("it was told $c->kind"), paymentUntil: 1.0, lookAfter: 0.0, clock: function () use (&$now): float {
        return $now;
    });
    $teller->collect(order: 'o-1', method: 'mtn_momo', country: 'CG', amount: Money::minor('5000', 'XAF'), phone: PHONE);
    $store->count($store->newest('payment', 'o-1'), (int) ($now * 1000) + 1, 0);
    $now += 60;
    same('unclear', $teller->send('o-1')->state);
    same([1, 'GET'], [count($s->asked()), $s->asked()[0]['method']]);
});

test('a payout that may have been sent is not over because the service does not know it', function (): void {
    $nothing = says(200, '{"items":[],"total":0,"limit":50,"offset":0}');
    $s = new Script(problem(422, 'insufficient_balance'), $nothing, $nothing, problem(422, 'insufficient_balance'));
    $store = new Till\Store\PdoStore(new PDO('sqlite::memory:'));
    $store->install();
    $now = microtime(true);
    $teller = new Teller(client($s), $store, static fn () => null, payoutUntil: 3600.0, lookAfter: 0.0, clock: function () use (&$now): float {
        return $now;
    });
    $payOut = fn (string $order, string $value) => $teller->payOut(order: $order, method: 'mtn_momo', country: 'CG', amount: Money::minor($value, 'XAF'), phone: PHONE);
    $payOut('o-1', '2000');
    $store->count($store->newest('payout', 'o-1'), (int) ($now * 1000) + 1, 0);
    same('unclear', $teller->sendPayOut('o-1')->state); // refused, but not the try before
    $now += 7200;
    same(['lost', 'lost'], [$teller->sendPayOut('o-1')->state, $teller->sendPayOut('o-1')->state]);
    same([[Row::LOST, 'stale']], array_map(static fn (Row $r) => [$r->state, $r->problem], $store->attention(0, 9)));
    throws(Till\AttemptOpen::class, fn () => $payOut('o-1', '2500'));
    $payOut('o-2', '2000');
    throws(Till\Refused::class, fn () => $teller->sendPayOut('o-2')); // at the first try nothing exists
});
