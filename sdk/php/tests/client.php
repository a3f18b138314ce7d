<?php

declare(strict_types=1);

// Calls: repeats, deadlines, budget, keys, lists.

require_once __DIR__ . '/_server.php';

use Till\Call;
use Till\CallError;
use Till\Client;
use Till\Money;
use Till\Operations;
use Till\Refused;
use Till\Unavailable;
use Till\Unclear;

function wish(): Till\CreatePayment
{
    return new Till\CreatePayment('mtn_momo', Money::minor('5000', 'XAF'), UUID, new Till\CreatePaymentCustomer(PHONE), country: 'CG');
}

test('a create is repeated with the same bytes', function (): void {
    $s = new Script('', says(502, '<html>'), problem(500, 'internal_error'), says(202, payment('pending')));
    $tries = [];
    $c = client($s, $waited, onTry: function (mixed ...$try) use (&$tries): void {
        $tries[] = $try;
    });
    same('p-1', $c->payments->create(wish())->id);
    $bodies = array_column($s->asked(), 'body');
    same([4, 1, true], [count($bodies), count(array_unique($bodies)), str_contains($bodies[0], UUID)]);
    same([0.125, 0.25, 0.5], $waited);
    same([0, 502, 500, 202], array_column($tries, 2));
});

test('outcomes are told apart, and hold nothing secret', function (): void {
    foreach ([
        'refused' => [[problem(422, 'validation_failed')], Refused::class, 'validation_failed', 1],
        'unavailable' => [[problem(429, 'rate_limited', 'Retry-After: 3600')], Unavailable::class, 'rate_limited', 1],
        'unclear' => [[problem(500, 'internal_error')], Unclear::class, 'internal_error', 5],
        'no answer' => [[''], Unclear::class, '', 5],
        '401 after no answer' => [['', problem(401, 'invalid_api_key')], Unclear::class, 'invalid_api_key', 2],
        'conflict' => [[problem(409, 'conflict')], Refused::class, 'conflict', 1],
        'redirect' => [[says(302, '', 'Location: http://127.0.0.1:1/')], Refused::class, '', 1],
        'another thing' => [[says(200, '{"ok":true}')], Unclear::class, '', 1],
        'a list' => [[says(200, '[]')], Unclear::class, '', 1],
        'a number for a text' => [[says(200, '{"id":5}')], Unclear::class, '', 1],
        'an echo' => [[says(400, '{"code":"bad","detail":"X-Api-Key: ' . KEY . '"}')], Refused::class, '', 1],
        'cut' => [["HTTP/1.1 202 x\r\nContent-Length: 1000\r\n\r\n" . payment('pending')], Unclear::class, '', 5],
    ] as $name => [$answers, $class, $code, $asked]) {
        $s = new Script(...$answers);
        $e = throws(CallError::class, fn () => client($s)->payments->create(wish()), $name);
        same([$class, $code, UUID, $asked], [$e::class, $e->code, $e->idempotency_key, count($s->asked())], $name);
        foreach ([KEY, 'secretsecret', PHONE, 'mtn_momo'] as $secret) {
            same(false, str_contains($e->getMessage() . print_r(get_object_vars($e), true), $secret), $name);
        }
    }
});

test('refused if absent', function (): void {
    $page = fn (string $items) => says(200, '{"items":[' . $items . '],"total":0,"limit":50,"offset":0}');
    foreach ([[$page(''), Refused::class], [problem(403, 'insufficient_scope'), Unclear::class], [says(200, '{"ok":true}'), Unclear::class], [$page(payment('processing')), null]] as [$read, $class]) {
        $s = new Script('', problem(422, 'validation_failed'), $read);
        $create = fn () => client($s)->payments->create(wish());
        $class === null ? same('processing', $create()->status) : throws($class, $create);
        same(true, str_contains($s->asked()[2]['path'], 'idempotency_key=' . UUID));
    }
});

test('a checkout is made again with the same bytes, and never looked up', function (): void {
    $checkout = static fn (string $state, string $key = UUID): string => json_encode(['id' => 'c-1', 'url' => 'https://pay.example.com/p/X', 'state' => $state,
        'idempotency_key' => $key, 'created_at' => '2026-11-15T05:51:53.123456Z', 'return_secret' => 'r-1']);
    $order = new Till\CreateCheckout(Money::minor('5000', 'XAF'), strtoupper(UUID), reference: 'order-7');
    $s = new Script('', problem(500, 'internal_error'), says(201, $checkout('open')));
    $made = client($s)->checkouts->create($order);
    $bodies = array_column($s->asked(), 'body');
    same(['c-1', 'https://pay.example.com/p/X', 'r-1', 3, 1], [$made->id, $made->url, $made->return_secret, count($bodies), count(array_unique($bodies))]);
    foreach ([['', problem(422, 'validation_failed')], [says(200, '{"ok":true}')], [says(201, $checkout('open', 'another'))]] as $answers) {
        $s = new Script(...$answers);
        same($order->idempotency_key, throws(Unclear::class, fn () => client($s)->checkouts->create($order))->idempotency_key);
        same(count($answers), count($s->asked()));
    }
    throws(Till\NoIdempotencyKey::class, fn () => client($s)->checkouts->create(new Till\CreateCheckout(Money::minor('5000', 'XAF'), '')));

    $s = new Script(says(200, $checkout('paid')), says(200, $checkout('paid')), says(200, $checkout('cancelled')), says(200, '{"items":[' . $checkout('paid') . '],"total":1,"limit":50,"offset":0}'));
    $c = client($s);
    same(['paid', 'paid', 'cancelled'], [$c->checkouts->get('c-1')->state, $c->checkouts->get('c-1', 30)->state, $c->checkouts->cancel('c-1')->state]);
    $filter = ['state' => 'paid', 'reference' => 'order-7', 'from_date' => new DateTimeImmutable('2026-11-01T00:00:00Z'), 'to_date' => '2026-12-01T00:00:00Z', 'order' => 'asc'];
    same(1, $c->checkouts->page(...$filter, limit: 9)->total);
    same(['c-1'], array_map(fn ($one) => $one->id, iterator_to_array($c->checkouts->all(...$filter), false)));
    $query = 'state=paid&reference=order-7&from_date=2026-11-01T00%3A00%3A00.000000Z&to_date=2026-12-01T00%3A00%3A00Z&order=asc&limit=';
    same(['/v1/checkouts/c-1', '/v1/checkouts/c-1?wait=30', '/v1/checkouts/c-1/cancel', "/v1/checkouts?{$query}9", "/v1/checkouts?{$query}200&offset=0"], array_column($s->asked(), 'path'));
});

test('what cannot be repeated is not, unless not one byte was written', function (): void {
    foreach (['', says(502, '<html>'), problem(503, 'service_unavailable', 'Retry-After: 1')] as $answer) {
        $s = new Script($answer);
        throws(Unclear::class, fn () => client($s)->apiKeys->create(new Till\CreateApiKey()));
        same(1, count($s->asked()));
    }
    $listener = stream_socket_server('tcp://127.0.0.1:0');
    $url = 'http://' . stream_socket_get_name($listener, false);
    fclose($listener);
    $tries = 0;
    $c = new Client($url, KEY, onTry: function () use (&$tries): void {
        $tries++;
    });
    $c->sleep = static fn () => null;
    $e = throws(Unavailable::class, fn () => $c->apiKeys->create(new Till\CreateApiKey()));
    same(['unreachable', 5], [$e->reason, $tries]);
});

test('a delete that is gone when it is repeated was done', function (): void {
    client(new Script('', problem(404, 'webhook_endpoint_not_found')))->webhooks->delete('e-1');
    throws(Refused::class, fn () => client(new Script(problem(404, 'webhook_endpoint_not_found')))->webhooks->delete('e-1'));
});

test('Retry-After is the floor, and beyond the deadline the call gives up', function (): void {
    client(new Script(problem(503, 'service_unavailable', 'Retry-After: 4'), says(200, payment('success'))), $waited)->payments->get('p-1');
    same([4.0], $waited);
    $e = throws(Unavailable::class, fn () => client(new Script(problem(503, 'service_unavailable', 'Retry-After: 31')), $none)->payments->get('p-1'));
    same(31.0, $e->retry_after);
});

test('the budget ends repeats', function (): void {
    $s = new Script(says(500, ''));
    $c = client($s);
    for ($n = 0; $n < 40; $n++) {
        throws(Unavailable::class, fn () => $c->payments->get('p-1'));
    }
    same(60, count($s->asked()));
});

test('a slow call ends with its deadline', function (): void {
    $s = new Script(function (): string {
        sleep(2);

        return '';
    });
    $c = new Client($s->url, KEY, deadline: 0.6, tryTimeout: 0.2);
    $began = microtime(true);
    same('timeout', throws(Unclear::class, fn () => $c->payments->create(wish()))->reason);
    same(true, microtime(true) - $began < 3);
});

test('the key is asked for each call, and once more after a 401', function (): void {
    $s = new Script(problem(401, 'invalid_api_key'), says(200, payment('success')));
    $n = 0;
    (new Client($s->url, function () use (&$n): string {
        return 'till_test_k' . ++$n;
    }))->payments->get('p-1');
    same(['till_test_k1', 'till_test_k2'], array_map(static fn (array $a) => $a['headers']['x-api-key'], $s->asked()));
    $s = new Script('', problem(401, 'invalid_api_key'));
    $keys = [KEY]; // there is none for the second question
    $e = throws(Unclear::class, fn () => client($s, apiKey: function () use (&$keys): string {
        return array_pop($keys) ?? throw new \RuntimeException('no vault');
    })->payments->create(wish()), 'the error of the key hides that it may have arrived');
    same('invalid_api_key', $e->code);
    foreach (['' => Till\NoKey::class, 'till_live_x' => Till\WrongMode::class, "till_test_x\n" => Till\BadKey::class, 'till_test_ x' => Till\BadKey::class] as $key => $class) {
        throws($class, fn () => (new Client($s->url, $key, expect: 'test'))->payments->get('p-1'));
    }
});

test('no trace of an error and no dump shows the key, the secret or the phone', function (): void {
    $before = ini_set('zend.exception_ignore_args', '0'); // as where there is no php.ini
    $teller = new Till\Teller(new Client('http://127.0.0.1:1/v1', KEY), new Till\Store\FileStore(sys_get_temp_dir() . '/till-' . bin2hex(random_bytes(6))), static fn () => null);
    $secret = 'whsec_secretsecret';
    $errors = [
        throws(Till\BadBaseUrl::class, fn () => new Client('http://pay.example.com', KEY)),
        throws(\LogicException::class, fn () => (new Client('http://127.0.0.1:1/v1', KEY, onTry: fn () => throw new \LogicException('mine')))->payments->get('p-1')),
        throws(Till\InvalidWish::class, fn () => $teller->collect(order: '', method: 'mtn_momo', amount: Money::minor('5000', 'XAF'), phone: PHONE)),
        $teller->receive($secret, new Till\Request('POST', ['webhook-id' => 'e', 'webhook-timestamp' => '1', 'webhook-signature' => 'v1,x'], '{}'))->error,
    ];
    ini_set('zend.exception_ignore_args', (string) $before);
    foreach ($errors as $e) {
        $shown = $e->getMessage() . print_r(array_map(static fn (array $f) => array_filter($f['args'] ?? [], is_string(...)) + array_filter($f['args'] ?? [], is_array(...)), $e->getTrace()), true);
        foreach (['secretsecret', PHONE] as $hidden) {
            same(false, str_contains($shown, $hidden), $e->getMessage());
        }
    }
    same(false, str_contains(print_r(new Client('http://127.0.0.1:1/v1', KEY), true), 'secretsecret'), 'a dump of the client');
});

test('base addresses', function (): void {
    foreach ([
        'https://pay.example.com/v1' => true, 'http://127.0.0.1:8080/v1' => true, 'http://localhost:1/v1/' => true, 'http://[::1]:1/v1' => true,
        'http://pay.example.com/v1' => false, 'http://10.0.0.1/v1' => false, 'ftp://127.0.0.1' => false, '' => false, 'pay.example.com' => false,
        'https://user:pass@pay.example.com' => false, 'https://pay.example.com/v1?key=1' => false, "https://pay.example.com/v1\r\nX: y" => false,
        'http://127.0.0.1.example.com/v1' => false,
    ] as $base => $good) {
        $good ? new Client($base, KEY) : throws(Till\BadBaseUrl::class, fn () => new Client($base, KEY), $base);
    }
    new Client('http://pay.example.com/v1', KEY, plainHttp: true);
    $w = wish();
    $w->idempotency_key = '';
    throws(Till\NoIdempotencyKey::class, fn () => (new Client('https://pay.example.com', KEY))->payments->create($w));
});

test('every request says who it is, and nothing else', function (): void {
    $s = new Script(says(200, payment('success')));
    client($s)->payments->get('p-1');
    $headers = $s->asked()[0]['headers'];
    same('till-sdk-php/' . Operations::VERSION . ' (api 1.1)', $headers['user-agent']);
    ksort($headers);
    same(['accept', 'host', 'user-agent', 'x-api-key'], array_keys($headers));
});

test('every operation has its place', function (): void {
    foreach ((new ReflectionClass(Operations::class))->getConstants() as $op) {
        if (is_array($op)) {
            $url = (new Call($op, array_fill(0, substr_count($op[2], '{'), 'a/b?c')))->url('https://pay.example.com/v1');
            same(false, str_contains($url, '{') || str_contains($url, '?'), $url);
        }
    }
});

test('lists go by time', function (): void {
    foreach ([['', 1001, 1], ['asc', 1001, 1], ['', 700, 9999], ['asc', 1000, 3], ['', 200, 1], ['', 0, 1]] as [$order, $n, $each]) {
        $items = [];
        for ($i = 0; $i < $n; $i++) {
            $items[] = ['id' => "p-$i", 'created_at' => sprintf('2026-11-15T00:00:00.%06dZ', intdiv($i, $each))];
        }
        $s = new Script(function (array $request) use (&$items): string {
            parse_str((string) parse_url($request['path'], PHP_URL_QUERY), $q);
            $found = array_values(array_filter($items, static fn (array $p) => $p['created_at'] >= ($q['from_date'] ?? '') && $p['created_at'] <= ($q['to_date'] ?? '9')));
            $found = ($q['order'] ?? '') === 'asc' ? $found : array_reverse($found);
            $items[] = ['id' => 'new-' . count($items), 'created_at' => sprintf('2026-11-15T01:00:00.%06dZ', count($items))]; // it grows

            return says(200, json_encode(['items' => array_slice($found, (int) $q['offset'], (int) $q['limit']), 'total' => count($found)]));
        });
        $seen = [];
        foreach (client($s)->payments->all(order: $order) as $p) {
            same(false, isset($seen[$p->id]), $p->id);
            $seen[$p->id] = true;
        }
        for ($i = 0; $i < $n; $i++) {
            same(true, isset($seen["p-$i"]), "p-$i of $n, $order");
        }
    }
    $same = json_encode(['items' => array_fill(0, 200, ['id' => 'p-1', 'created_at' => '2026-11-15T00:00:00.000000Z'])]);
    throws(Till\NoProgress::class, fn () => iterator_to_array(client(new Script(says(200, $same)))->payments->all(), false));
});

test('an export that is cut is not taken for the whole', function (): void {
    $line = '{"id":"t-1","sequence":1,"amount":{"value":"999999999999999","currency":"XAF"}}' . "\n";
    foreach ([
        'whole' => [says(200, $line . $line . "\n" . $line), 3, null],
        'without an end' => [says(200, $line . rtrim($line)), 2, null],
        'empty' => [says(200, ''), 0, null],
        'cut' => ["HTTP/1.1 200 x\r\nContent-Length: 1000\r\n\r\n" . $line . substr($line, 0, 20), 1, Unavailable::class],
        'refused' => [problem(403, 'insufficient_scope'), 0, Refused::class],
    ] as $name => [$answer, $lines, $class]) {
        $s = new Script($answer);
        $got = 0;
        $export = function () use ($s, &$got): void {
            client($s)->transactions->export(function (Till\Transaction $t) use (&$got): void {
                same('999999999999999', $t->amount->value);
                $got++;
            });
        };
        $class === null ? $export() : throws($class, $export, $name);
        same([$lines, 1], [$got, count($s->asked())], $name);
    }
});

test('money in logs and in JSON', function (): void {
    same(['50.00 KES', '5000 minor units of QQQ'], ['' . Money::minor(5000, 'KES'), '' . Money::minor(5000, 'QQQ')]);
    same('{"amount":{"value":"5000","currency":"KES"}}', json_encode(['amount' => Money::minor(5000, 'KES')]));
});

test('a delivery is verified by this machine\'s clock', function (): void {
    $body = '{"id":"e-1","type":"payment.success"}';
    $at = static function (int $time) use ($body): Till\Request {
        $secret = base64_decode(substr(SECRET, 6));

        return new Till\Request('POST', ['webhook-id' => 'm-1', 'webhook-timestamp' => (string) $time,
            'webhook-signature' => 'v1,' . base64_encode(hash_hmac('sha256', "m-1.$time.$body", $secret, true))], $body);
    };
    same('e-1', Till\Webhook::verify(SECRET, $at(time()))->id);
    throws(Till\TooOld::class, static fn () => Till\Webhook::verify(SECRET, $at(time() - 3600)));
});
