<?php

declare(strict_types=1);

// What a program can use of this package is written down in surface.txt, so that every removal is seen in review: within a major
// version there are only additions. TILL_UPDATE=1 php tests/run.php surface writes it anew.

require_once __DIR__ . '/_server.php';

test('surface', function (): void {
    $src = dirname(__DIR__) . '/src';
    $classes = [];
    foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator($src, FilesystemIterator::SKIP_DOTS)) as $file) {
        $text = $file->getExtension() === 'php' && !str_contains($file->getPathname(), '/Laravel/') && !in_array($file->getBasename(), ['Types.php', 'Operations.php', 'Currencies.php'], true) ? (string) file_get_contents($file->getPathname()) : '';
        if (preg_match('/^namespace ([\w\\\\]+);/m', $text, $space) === 1) {
            preg_match_all('/^(?:final |abstract )?(?:class|interface) (\w+)/m', $text, $names);
            foreach ($names[1] as $name) {
                $classes[] = $space[1] . '\\' . $name;
            }
        }
    }
    $out = [];
    foreach ($classes as $class) {
        if ($class === 'Till\\Store\\LaravelStore') {
            continue; // it needs Laravel
        }
        $r = new ReflectionClass($class);
        $out[] = "class $class" . ($r->getParentClass() ? ' extends ' . $r->getParentClass()->getName() : '');
        foreach ($r->getReflectionConstants(ReflectionClassConstant::IS_PUBLIC) as $c) {
            $out[] = "$class::{$c->getName()}";
        }
        foreach ($r->getProperties(ReflectionProperty::IS_PUBLIC) as $p) {
            $p->getDeclaringClass()->getName() === $class && $out[] = "$class::\${$p->getName()} " . $p->getType();
        }
        foreach ($r->getMethods(ReflectionMethod::IS_PUBLIC) as $m) {
            if ($m->getDeclaringClass()->getName() === $class) {
                $args = array_map(static fn (ReflectionParameter $a) => trim($a->getType() . ' ' . ($a->isVariadic() ? '...' : '') . '$' . $a->getName() . ($a->isOptional() ? '=' : '')), $m->getParameters());
                $out[] = "$class::{$m->getName()}(" . implode(', ', $args) . ')' . ($m->hasReturnType() ? ': ' . $m->getReturnType() : '');
            }
        }
    }
    sort($out);
    $file = dirname(__DIR__) . '/surface.txt';
    if (getenv('TILL_UPDATE')) {
        file_put_contents($file, implode("\n", $out) . "\n");
    }
    same(explode("\n", trim((string) file_get_contents($file))), $out, 'surface.txt is not what this package offers');
});

test('version', function (): void {
    $version = trim((string) file_get_contents(dirname(__DIR__, 2) . '/VERSION'));
    same($version, Till\Operations::VERSION);
    same(false, isset(json_decode((string) file_get_contents(dirname(__DIR__) . '/composer.json'))->version), 'the repository that serves the package names its version');
});

test('the receiver of the guide, in PHP itself', function (): void {
    $folder = folder();
    $guide = (string) file_get_contents(dirname(__DIR__, 3) . '/docs/guide/sdk-php.md');
    preg_match('/<!-- test: file webhook\.php -->\n(?:<!--[^\n]*-->\n)*```php\n(.*?)```/s', $guide, $m);
    file_put_contents("$folder/webhook.php", $m[1]);
    file_put_contents("$folder/teller.php", '<?php require ' . var_export(dirname(__DIR__) . '/src/autoload.php', true) . ";\n"
        . '$teller = new Till\Teller(new Till\Client("http://127.0.0.1:1", "till_test_a_b"), new Till\Store\FileStore(__DIR__ . "/store"), function (Till\Change $c): void {'
        . ' file_put_contents(__DIR__ . "/acted", $c->kind . "\n", FILE_APPEND); if (is_file(__DIR__ . "/fails")) { throw new Exception("secret"); } }, foreign: true);');
    $listener = stream_socket_server('tcp://127.0.0.1:0');
    $address = stream_socket_get_name($listener, false);
    fclose($listener);
    $server = proc_open([PHP_BINARY, '-S', $address, '-t', $folder], [1 => ['file', '/dev/null', 'w'], 2 => ['file', '/dev/null', 'w']], $pipes, null, ['TILL_WEBHOOK_SECRET' => SECRET] + getenv());
    try {
        for ($n = 0; $n < 100 && !@stream_socket_client("tcp://$address"); $n++) {
            usleep(50_000);
        }
        $post = static function (string $body, array $headers, string $method = 'POST') use ($address): array {
            $curl = curl_init("http://$address/webhook.php");
            curl_setopt_array($curl, [CURLOPT_CUSTOMREQUEST => $method, CURLOPT_POSTFIELDS => $body, CURLOPT_RETURNTRANSFER => true,
                CURLOPT_HTTPHEADER => [...array_map(static fn ($n, $v) => "$n: $v", array_keys($headers), $headers), 'Content-Type: application/json', 'Expect:']]);

            return [curl_exec($curl), curl_getinfo($curl, CURLINFO_RESPONSE_CODE)];
        };
        $body = event('e-1', 'payment.success', ['id' => 'p-1', 'status' => 'success', 'idempotency_key' => 'k']);
        touch("$folder/fails");
        same(['not done', 500], $post($body, signed('e-1', $body)));
        unlink("$folder/fails");
        foreach ([1, 2] as $n) {
            same(['', 204], $post($body, signed('e-1', $body)));
        }
        same("payment.success\npayment.success\n", file_get_contents("$folder/acted")); // once in vain, once for good
        same(['bad_signature', 400], $post($body, signed('e-1', 'other')));
        same(['too_large', 400], $post(str_repeat('x', 1 << 20 | 1), signed('e-1', $body)));
        same(['post', 405], $post('', [], 'GET'));
    } finally {
        proc_terminate($server, SIGKILL);
        proc_close($server);
    }
});
