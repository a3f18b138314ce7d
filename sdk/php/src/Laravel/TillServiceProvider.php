<?php

declare(strict_types=1);

namespace Till\Laravel;

use Illuminate\Contracts\Container\Container;
use Illuminate\Support\ServiceProvider;
use Till\Change;
use Till\Client;
use Till\Mistake;
use Till\Store;
use Till\Store\LaravelStore;
use Till\Teller;

/** Makes the client and the teller from config/till.php, and adds the command till:sweep. */
final class TillServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->mergeConfigFrom(__DIR__ . '/config.php', 'till');
        $this->app->singleton(Client::class, static fn (Container $app) => new Client(
            (string) $app['config']->get('till.base_url'),
            static fn () => (string) $app['config']->get('till.api_key'),
            expect: (string) $app['config']->get('till.expect'),
        ));
        $this->app->singleton(Store::class, static fn (Container $app) => new LaravelStore($app['db']->connection($app['config']->get('till.connection'))));
        $this->app->singleton(Teller::class, static function (Container $app): Teller {
            $class = $app['config']->get('till.on_change') ?? throw new Mistake('till: config/till.php names no class for on_change');

            return new Teller($app->make(Client::class), $app->make(Store::class), static fn (Change $c, mixed $connection) => $app->make($class)($c, $connection),
                foreign: (bool) $app['config']->get('till.foreign'), fromStart: (bool) $app['config']->get('till.from_start'));
        });
    }

    public function boot(): void
    {
        if ($this->app->runningInConsole()) {
            $this->publishes([
                __DIR__ . '/config.php' => $this->app->configPath('till.php'),
                __DIR__ . '/migrations' => $this->app->databasePath('migrations'),
            ], 'till');
            $this->commands([SweepCommand::class]);
        }
    }
}
