<?php

declare(strict_types=1);

// A shop that receives webhooks with Laravel and the SDK for PHP: php -S runs this file for each request.

error_reporting(E_ALL & ~E_DEPRECATED); // the distribution's Laravel is older than its PHP
require __DIR__ . '/../../sdk/php/src/autoload.php';
require_once 'Illuminate/autoload.php';

final class OnPayment
{
    public function __invoke(Till\Change $c): void
    {
        if ($c->paid()) {
            app('db')->table('acted')->insert(['payment' => $c->payment->id, 'amount' => $c->payment->amount->value]);
        }
    }
}

$folder = getenv('FOLDER');
$install = !is_dir("$folder/config");
foreach (['config', 'bootstrap/cache', 'storage/framework/views', 'storage/logs', 'database/migrations'] as $name) {
    @mkdir("$folder/$name", 0o777, true);
}
$config = static function (string $name, array $values) use ($folder): void {
    file_put_contents("$folder/config/$name.php", '<?php return ' . var_export($values, true) . ';', LOCK_EX);
};
if ($install) {
    touch("$folder/shop.db");
    $config('app', ['name' => 'shop', 'env' => 'testing', 'debug' => false, 'key' => 'base64:' . base64_encode(str_repeat('k', 32)), 'cipher' => 'AES-256-CBC', 'timezone' => 'UTC', 'locale' => 'en', 'providers' => [
        Illuminate\Filesystem\FilesystemServiceProvider::class, Illuminate\Database\DatabaseServiceProvider::class, Illuminate\Foundation\Providers\ArtisanServiceProvider::class, Illuminate\Foundation\Providers\ComposerServiceProvider::class,
        Illuminate\Database\MigrationServiceProvider::class, Illuminate\View\ViewServiceProvider::class, Illuminate\Cache\CacheServiceProvider::class, Illuminate\Queue\QueueServiceProvider::class,
        Till\Laravel\TillServiceProvider::class,
    ]]);
    $config('database', ['default' => 'sqlite', 'migrations' => 'migrations', 'connections' => ['sqlite' => ['driver' => 'sqlite', 'database' => "$folder/shop.db", 'prefix' => '', 'options' => [PDO::ATTR_TIMEOUT => 10]]]]);
    $config('cache', ['default' => 'array', 'stores' => ['array' => ['driver' => 'array']]]);
    $config('queue', ['default' => 'sync', 'connections' => ['sync' => ['driver' => 'sync']]]);
    $config('view', ['paths' => [], 'compiled' => "$folder/storage/framework/views"]);
    $config('logging', ['default' => 'single', 'channels' => ['single' => ['driver' => 'single', 'path' => "$folder/storage/logs/laravel.log"]]]);
    $config('filesystems', ['default' => 'local', 'disks' => ['local' => ['driver' => 'local', 'root' => "$folder/storage"]]]);
    $config('till', ['base_url' => 'http://127.0.0.1:1/v1', 'api_key' => 'till_test_a_b', 'expect' => 'test', 'webhook_secret' => getenv('TILL_WEBHOOK_SECRET'), 'connection' => null, 'on_change' => OnPayment::class, 'foreign' => true]);
}
$app = new Illuminate\Foundation\Application($folder);
$app->singleton(Illuminate\Contracts\Http\Kernel::class, Illuminate\Foundation\Http\Kernel::class);
$app->singleton(Illuminate\Contracts\Console\Kernel::class, Illuminate\Foundation\Console\Kernel::class);
$app->singleton(Illuminate\Contracts\Debug\ExceptionHandler::class, Illuminate\Foundation\Exceptions\Handler::class);
if (PHP_SAPI === 'cli') { // before it serves, as a deployment would
    $console = $app->make(Illuminate\Contracts\Console\Kernel::class);
    $console->bootstrap();
    $console->call('vendor:publish', ['--tag' => 'till']);
    $console->call('migrate', ['--force' => true]);
    $app['db']->statement('CREATE TABLE acted (payment TEXT, amount TEXT)');
    exit;
}
$app->booted(static fn () => $app['router']->post('/till', Till\Laravel\WebhookController::class));
$kernel = $app->make(Illuminate\Contracts\Http\Kernel::class);
$kernel->handle(Illuminate\Http\Request::capture())->send();
