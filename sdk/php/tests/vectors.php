<?php

declare(strict_types=1);

// The cases that all SDKs share.

use Till\BadAmount;
use Till\BadCurrency;
use Till\BadParts;
use Till\Call;
use Till\Json;
use Till\Money;
use Till\MoneyError;
use Till\Negative;
use Till\NotExact;
use Till\Operations;
use Till\OtherCurrency;
use Till\Phone;
use Till\PhoneError;
use Till\Problem;
use Till\Request;
use Till\Teller;
use Till\TooManyDecimals;
use Till\Tried;
use Till\Webhook;

function vectors(string $name): stdClass
{
    return Json::parse((string) file_get_contents(__DIR__ . "/../../conformance/vectors/$name"));
}

test('webhook vectors', function (): void {
    $cases = vectors('webhook.json')->cases;
    same(true, count($cases) > 100);
    foreach ($cases as $c) {
        $body = preg_replace('/PAD/', str_repeat('x', $c->pad ?? 0), $c->body, 1);
        try {
            $got = Webhook::verify($c->secrets ?? [], new Request('POST', (array) $c->headers, $body), (float) (string) $c->now)->id !== '' ? 'ok' : 'no event';
        } catch (Till\WebhookError $e) {
            $got = $e::WORD;
        } catch (Till\BadSecret) {
            $got = 'bad_secret';
        }
        same($c->expect, $got, $c->name);
    }
});

test('return vectors', function (): void {
    $cases = vectors('return.json')->cases;
    same(true, count($cases) >= 40);
    $verify = static function (object $c, array $query): string {
        try {
            return Till\Returned::verify($c->secret, $c->checkout, $query, (float) (string) $c->now);
        } catch (Till\ReturnError $e) {
            return $e->word;
        }
    };
    foreach ($cases as $c) {
        same($c->expect, $verify($c, (array) $c->query), $c->name);
    }
    same('unsigned', $verify($cases[0], ['till_state' => ['paid']] + (array) $cases[0]->query)); // as ?till_state[]=paid is read
});

test('outcome vectors', function (): void {
    $calls = ['create' => Operations::CREATE_PAYMENT, 'read' => Operations::GET_PAYMENT, 'change' => Operations::CANCEL_PAYOUT];
    foreach (vectors('outcome.json')->cases as $c) {
        $problem = isset($c->code) && $c->code !== '' ? Problem::fromJson((object) ['code' => $c->code]) : null;
        $t = new Tried($c->status ?? 0, $c->reason ?? '', $c->sent ?? true, $problem);
        $got = $t->judge($calls[$c->call], $c->before ?? false);
        same($c->expect, ['done' => 'taken', 'look' => 'refused_if_absent'][$got] ?? $got, json_encode($c));
    }
});

test('retry vectors', function (): void {
    $v = vectors('retry.json');
    $calls = ['safe' => Operations::GET_PAYMENT, 'key' => Operations::CREATE_PAYMENT, 'never' => Operations::CREATE_API_KEY];
    foreach ($v->repeats as $c) {
        same($c->expect, (new Tried($c->status ?? 0, $c->reason ?? '', $c->sent ?? false))->repeatable($calls[$c->call]), json_encode($c));
    }
    foreach ($v->delays as $c) {
        same($c->expect_ms, (int) (Call::delay($c->repeat, ($c->retry_after_ms ?? 0) / 1000, (float) (string) $c->random) * 1000 + 1e-6), json_encode($c));
    }
    foreach ($v->headers as $c) {
        $now = gmmktime(5, 51, 53, 11, 15, 2026) + (isset($c->date) && $c->date !== '' ? 3600 : 0); // a wrong clock of ours does not matter
        $now = isset($c->now) ? Call::date($c->now) ?? $now : $now;
        same($c->expect_ms, (int) (Call::retryAfter($c->retry_after, $c->date ?? '', $now) * 1000), json_encode($c));
    }
    foreach ($v->outbox as $c) {
        same($c->expect_ms, Teller::outboxDelay($c->tries));
    }
});

test('money vectors', function (): void {
    $words = [BadAmount::class => 'bad_amount', BadCurrency::class => 'bad_currency', OtherCurrency::class => 'other_currency', BadParts::class => 'bad_parts',
        TooManyDecimals::class => 'too_many_decimals', NotExact::class => 'not_exact', Negative::class => 'negative'];
    foreach (vectors('money.json')->cases as $c) {
        $m = Money::minor($c->value ?? '', $c->currency ?? '');
        $other = Money::minor($c->other ?? '', $c->other_currency ?? '');
        $error = null;
        $got = null;
        try {
            $got = match ($c->op) {
                'major' => Money::major($c->amount, $c->currency)->value,
                'check' => $m->check() ?? 'ok',
                'add' => $m->add($other)->value,
                'subtract' => $m->subtract($other)->value,
                'compare' => (string) $m->compare($other),
                'times' => $m->times($c->factor)->value,
                'split' => array_map(fn (Money $p) => $p->value, $m->split($c->parts)),
                'to_major' => $m->toMajor(),
                'format' => $m->format($c->language),
            };
        } catch (MoneyError $e) {
            $error = $words[$e::class];
        }
        same([$c->expect ?? null, $c->error ?? null], [$got, $error], json_encode($c));
    }
});

test('floats are refused', function (): void {
    foreach ([
        fn () => Money::minor(5000.0, 'XAF'),
        fn () => Money::major(50.0, 'KES'),
        fn () => Money::minor('1', 'XAF')->times(1.5),
        fn () => (new Till\CreatePaymentChargeItem('a', 1.5, '1', '1'))->toJson(),
    ] as $wrong) {
        throws(TypeError::class, $wrong);
    }
});

test('phone vectors', function (): void {
    foreach (vectors('phone.json')->cases as $c) {
        try {
            [$got, $error] = [Phone::read($c->text, Till\PaymentMethodCountryPhone::fromJson($c->rule)), null];
        } catch (PhoneError $e) {
            [$got, $error] = [null, $e->word];
        }
        same([$c->expect ?? null, $c->error ?? null], [$got, $error], $c->text);
    }
});

test('decode vectors', function (): void {
    $grow = function (mixed $v) use (&$grow): mixed {
        if (is_array($v)) {
            return array_map($grow, $v);
        }
        if (!$v instanceof stdClass) {
            return $v;
        }
        $out = new stdClass();
        foreach (get_object_vars($v) as $name => $member) {
            $out->{$name} = in_array($name, ['metadata', 'amount', 'headers'], true) ? $member : $grow($member);
        }
        $out->blessing = (object) ['of' => [new Till\Digits('12345678901234567890'), null]];

        return $out;
    };
    foreach (vectors('decode.json')->cases as $c) {
        $class = 'Till\\' . $c->schema;
        foreach ([$c->json, $grow($c->json)] as $value) {
            $text = Json::render($value);
            same(true, Json::same(Json::render($class::fromJson(Json::parse($text))->toJson()), $text), $c->from);
        }
    }
});

test('JSON keeps digits and texts', function (): void {
    $texts = ['{"a":123456789012.123456,"b":1.50,"c":12345678901234567890,"d":{},"e":[]}', '["\u0000#5","\u0000","\u0000#\"x",1.5]', '{"":1,"x y":"😀\"\\\\"}', '-0.5', '[1e3,{"a":[{"b":2.0}]}]'];
    foreach ($texts as $text) {
        same(json_encode(json_decode($text), JSON_PRESERVE_ZERO_FRACTION) === null ? '' : true, Json::same($text, Json::render(Json::parse($text))), $text);
    }
    same('[1e3,{"a":[{"b":2.0}]}]', Json::render(Json::parse($texts[4])));
    same("\0#5", Json::parse($texts[1])[0]);
    same("\0#\"x", Json::parse($texts[1])[2]);
    foreach (['', 'NaN', '[Infinity]', "\"\xff\"", '{} {}', '01', '1.', '[1.5.2]', '-', '{"a":1,}'] as $text) {
        throws(JsonException::class, fn () => Json::parse($text), $text);
    }
    foreach ([NAN, "\xff", new DateTime(), fopen('php://memory', 'r')] as $value) {
        throws(TypeError::class, fn () => Json::render($value));
    }
    same(false, Json::same('{"a":1}', '{"a":true}'));
    same(false, Json::same('{"a":1.0}', '{"a":1}'));
    same(true, Json::same('{"a":1,"b":[2]}', '{ "b" : [2], "a": 1}'));
});
