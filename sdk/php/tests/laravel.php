<?php

declare(strict_types=1);

// The real Laravel of the distribution: provider, migration, controller, command, and Eloquent in the same transaction.

require_once __DIR__ . '/_server.php';
require_once __DIR__ . '/stores.php';

use Illuminate\Database\Connection;
use Till\Change;
use Till\InsideTransaction;
use Till\Money;
use Till\Store;
use Till\Store\LaravelStore;
use Till\Teller;

final class ShopFunction
{
    public static ?Throwable $fails = null;

    public function __invoke(Change $c, Connection $db): void
    {
        $db->table('yours')->insert(['value' => $c->kind]);
        if (self::$fails) {
            throw self::$fails;
        }
    }
}

if (stream_resolve_include_path('Illuminate/autoload.php') === false) {
    missing('Laravel is not installed: make sdk installs php-laravel-framework');
} else {
    $level = error_reporting(E_ALL & ~E_DEPRECATED); // this release of Laravel is older than this PHP
    require_once 'Illuminate/autoload.php';

    function laravel(string $url): Illuminate\Foundation\Application
    {
        error_reporting(E_ALL & ~E_DEPRECATED);
        $folder = folder();
        foreach (['config', 'bootstrap/cache', 'storage/framework/views', 'storage/logs', 'routes', 'database/migrations'] as $name) {
            mkdir("$folder/$name", 0o777, true);
        }
        $config = static fn (string $name, array $values) => file_put_contents("$folder/config/$name.php", '<?php return ' . var_export($values, true) . ';');
        touch("$folder/shop.db");
        $config('app', ['name' => 'shop', 'env' => 'testing', 'debug' => false, 'key' => 'base64:' . base64_encode(str_repeat('k', 32)), 'cipher' => 'AES-256-CBC', 'timezone' => 'UTC', 'locale' => 'en', 'providers' => [
            Illuminate\Filesystem\FilesystemServiceProvider::class, Illuminate\Database\DatabaseServiceProvider::class, Illuminate\Foundation\Providers\ArtisanServiceProvider::class, Illuminate\Foundation\Providers\ComposerServiceProvider::class,
            Illuminate\Database\MigrationServiceProvider::class, Illuminate\View\ViewServiceProvider::class, Illuminate\Cache\CacheServiceProvider::class, Illuminate\Queue\QueueServiceProvider::class,
            Till\Laravel\TillServiceProvider::class,
        ]]);
        $config('database', ['default' => 'sqlite', 'migrations' => 'migrations', 'connections' => ['sqlite' => ['driver' => 'sqlite', 'database' => "$folder/shop.db", 'prefix' => '']]]);
        $config('cache', ['default' => 'array', 'stores' => ['array' => ['driver' => 'array']]]);
        $config('queue', ['default' => 'sync', 'connections' => ['sync' => ['driver' => 'sync']]]);
        $config('view', ['paths' => [], 'compiled' => "$folder/storage/framework/views"]);
        $config('logging', ['default' => 'single', 'channels' => ['single' => ['driver' => 'single', 'path' => "$folder/storage/logs/laravel.log"]]]);
        $config('filesystems', ['default' => 'local', 'disks' => ['local' => ['driver' => 'local', 'root' => "$folder/storage"]]]);
        $config('till', ['base_url' => $url, 'api_key' => KEY, 'expect' => 'test', 'webhook_secret' => 'whsec_CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg=, ' . SECRET, 'connection' => null, 'on_change' => ShopFunction::class, 'foreign' => true]);
        $app = new Illuminate\Foundation\Application($folder);
        $app->singleton(Illuminate\Contracts\Http\Kernel::class, Illuminate\Foundation\Http\Kernel::class);
        $app->singleton(Illuminate\Contracts\Console\Kernel::class, Illuminate\Foundation\Console\Kernel::class);
        $app->singleton(Illuminate\Contracts\Debug\ExceptionHandler::class, Illuminate\Foundation\Exceptions\Handler::class);
        $console = $app->make(Illuminate\Contracts\Console\Kernel::class);
        $console->bootstrap();
        restore_error_handler(); // Laravel's own: the tests have theirs
        restore_exception_handler();
        $app['router']->post('/till', Till\Laravel\WebhookController::class);
        $console->call('vendor:publish', ['--tag' => 'till', '--force' => false]);
        $console->call('migrate', ['--force' => true]);
        $app['db']->statement('CREATE TABLE yours (value TEXT)');

        return $app;
    }

    function post(Illuminate\Foundation\Application $app, string $body, array $headers, string $method = 'POST'): Symfony\Component\HttpFoundation\Response
    {
        $request = Illuminate\Http\Request::create('/till', $method, content: $body);
        foreach ($headers as $name => $value) {
            $request->headers->set($name, $value);
        }

        return $app->make(Illuminate\Contracts\Http\Kernel::class)->handle($request);
    }

    test('laravel: webhooks', function (): void {
        $app = laravel('http://127.0.0.1:1/v1');
        $yours = fn () => $app['db']->table('yours')->pluck('value')->all();
        $body = event('e-1', 'payment.success', ['id' => 'p-1', 'status' => 'success', 'idempotency_key' => 'k']);
        ShopFunction::$fails = new LogicException('undefined order');
        $reply = post($app, $body, signed('e-1', $body));
        same([500, 'not done', []], [$reply->getStatusCode(), $reply->getContent(), $yours()]);
        same(true, str_contains((string) file_get_contents($app->storagePath() . '/logs/laravel.log'), 'undefined order'));
        ShopFunction::$fails = null;
        foreach ([1, 2] as $n) {
            same(204, post($app, $body, signed('e-1', $body))->getStatusCode());
        }
        same(['payment.success'], $yours());
        $forged = post($app, $body, signed('e-1', 'other'));
        same([400, 'bad_signature'], [$forged->getStatusCode(), $forged->getContent()]);
        same('too_large', post($app, $body, ['Content-Length' => '1048577'] + signed('e-1', $body))->getContent());
        same(405, post($app, '', [], 'GET')->getStatusCode());
    });

    test('laravel: the order and the wish are one commit', function (): void {
        $s = new Script(says(500, ''));
        $app = laravel($s->url);
        $teller = $app->make(Teller::class);
        $wish = ['order' => 'o-1', 'method' => 'mtn_momo', 'country' => 'CG', 'amount' => Money::minor('5000', 'XAF'), 'phone' => PHONE];
        throws(LogicException::class, fn () => $app['db']->transaction(function () use ($app, $teller, $wish): never {
            $app['db']->table('yours')->insert(['value' => 'order']);
            $teller->collect(...$wish);
            throw new LogicException('the shop');
        }));
        throws(Till\NoAttempt::class, fn () => $teller->send('o-1'));
        $app['db']->transaction(function () use ($app, $teller, $wish): void {
            $app['db']->table('yours')->insert(['value' => 'order']);
            $teller->collect(...$wish);
            // Before the commit nothing may leave: a crash would forget the key.
            throws(InsideTransaction::class, fn () => $teller->send('o-1'));
        });
        same([0, ['order']], [count($s->asked()), $app['db']->table('yours')->pluck('value')->all()]);
        $app['db']->table('till_outbox')->update(['next_at' => 0]);
        $console = $app->make(Illuminate\Contracts\Console\Kernel::class);
        same([1, true], [$console->call('till:sweep'), str_contains($console->output(), 'sent 0, waiting 1, events 0, read 0')]); // this service is ill
        same(0, $console->call('migrate:rollback', ['--force' => true]));
        same(false, $app['db']->getSchemaBuilder()->hasTable('till_outbox'));
    });

    storeSuite('laravel', static function (): Engine {
        $folder = folder();
        $connect = static fn () => new Illuminate\Database\SQLiteConnection(new PDO("sqlite:$folder/shop.db", options: [PDO::ATTR_TIMEOUT => 5]), "$folder/shop.db");
        (new PDO("sqlite:$folder/shop.db"))->exec('PRAGMA journal_mode = WAL; CREATE TABLE yours (value TEXT)');
        $of = new WeakMap();

        return new Engine(
            static function () use ($connect, $of): Store {
                $connection = $connect();
                $store = new LaravelStore($connection);
                $of[$store] = $connection;

                return $store;
            },
            static fn (Store $s, Closure $work) => $of[$s]->transaction($work),
            static fn (Connection $tx, string $value) => $tx->table('yours')->insert(['value' => $value]),
            static fn (Store $s) => (string) $of[$s]->table('yours')->value('value'),
        );
    });
    error_reporting($level);
}
