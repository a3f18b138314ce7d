<?php

declare(strict_types=1);

// php tests/run.php [NAME…] runs the tests whose names begin so. It needs nothing but PHP.

error_reporting(E_ALL);
set_error_handler(static function (int $level, string $text, string $file, int $line): bool {
    if ((error_reporting() & $level) === 0 || str_starts_with($file, '/usr/share/php/')) {
        return false; // silenced, or a framework's own
    }
    throw new ErrorException($text, 0, $level, $file, $line);
});
require __DIR__ . '/../src/autoload.php';

$tests = [];
function test(string $name, callable $work): void
{
    $GLOBALS['tests'][$name] = $work;
}

function same(mixed $want, mixed $got, string $about = ''): void
{
    if ($want !== $got) {
        throw new LogicException(($about === '' ? '' : "$about: ") . var_export($got, true) . ', want ' . var_export($want, true));
    }
}

function throws(string $class, callable $work, string $about = ''): Throwable
{
    try {
        $work();
    } catch (Throwable $e) {
        if ($e instanceof $class) {
            return $e;
        }
        throw new LogicException("$about: " . $e::class . ' ' . $e->getMessage() . ", want $class");
    }
    throw new LogicException("$about: nothing is thrown, want $class");
}

/** Says what cannot be tried here. With TILL_EVERYTHING, as make sdk sets it, that is a failure. */
function missing(string $what): void
{
    if (getenv('TILL_EVERYTHING')) {
        test($what, static fn () => throw new LogicException($what));
    } else {
        fwrite(STDERR, "not tried: $what\n");
    }
}

foreach (glob(__DIR__ . '/*.php') as $file) {
    if (basename($file) !== 'run.php' && !str_starts_with(basename($file), '_')) {
        require_once $file;
    }
}
$failed = 0;
foreach ($tests as $name => $work) {
    if ($argc > 1 && !array_filter(array_slice($argv, 1), static fn (string $begin) => str_starts_with($name, $begin))) {
        continue;
    }
    try {
        $work();
    } catch (Throwable $e) {
        $failed++;
        $at = $e->getTrace()[0]['file'] ?? $e->getFile();
        echo "FAILED $name: ", $e::class, ' ', $e->getMessage(), ' at ', basename($e->getFile()), ':', $e->getLine(), "\n";
    }
}
echo $failed === 0 ? 'ok, ' : "$failed failed of ", count($tests), " tests\n";
exit($failed === 0 ? 0 : 1);
