<?php

declare(strict_types=1);

// Every store on the engines that are here. Which one is not here is said, and not passed over in silence.

require_once __DIR__ . '/_server.php';

use Till\Cursor;
use Till\Decision;
use Till\InsideTransaction;
use Till\Row;
use Till\Settlement;
use Till\Store;
use Till\Store\FileStore;
use Till\Store\FileTx;
use Till\Store\PdoStore;
use Till\Subject;

const START = 1794721913123;

function row(string $order, int $attempt = 1, mixed ...$changes): Row
{
    $r = new Row("00000000-0000-4000-8000-$order$attempt", 'payment', $order, $attempt, '{"a": 1}', next_at: START, send_until: START + 60_000, created_at: START);
    foreach ($changes as $name => $value) {
        $r->{$name} = $value;
    }

    return $r;
}

function names(array $rows): string
{
    return implode(' ', array_map(static fn (Row $r) => $r->order . $r->attempt, $rows));
}

/** A database of a test: open makes the store as another program would; update runs your transaction; set and get keep a value of yours. */
final class Engine
{
    public function __construct(public Closure $open, public Closure $update, public Closure $set, public Closure $get)
    {
    }
}

/** Runs a function in processes of its own at the same time, and returns what each wrote. */
function together(int $n, callable $work): array
{
    $file = tempnam(sys_get_temp_dir(), 'till');
    $pids = [];
    for ($i = 0; $i < $n; $i++) {
        $pid = pcntl_fork();
        if ($pid === 0) {
            try {
                file_put_contents($file, $work($i) . "\n", FILE_APPEND | LOCK_EX);
            } catch (Throwable $e) {
                file_put_contents($file, $e->getMessage() . "\n", FILE_APPEND | LOCK_EX);
            }
            posix_kill(getmypid(), SIGKILL);
        }
        $pids[] = $pid;
    }
    foreach ($pids as $pid) {
        pcntl_waitpid($pid, $status);
    }
    $out = file($file, FILE_IGNORE_NEW_LINES);
    unlink($file);

    return $out;
}

/** The suite that every store is held to. */
function storeSuite(string $name, Closure $engine): void
{
    $case = static function (string $what, Closure $work) use ($name, $engine): void {
        test("$name: $what", static function () use ($engine, $work): void {
            $e = $engine();
            $s = ($e->open)();
            $s->install();
            $put = static function (Row ...$rows) use ($e, $s): void {
                ($e->update)($s, static function () use ($s, $rows): void {
                    foreach ($rows as $r) {
                        same(true, $s->put($r));
                    }
                });
            };
            $work($s, $put, $e);
        });
    };
    $case('rows and transactions', static function (Store $s, Closure $put, Engine $e): void {
        same(null, $s->newest('payment', 'a'));
        $body = "{\"text\": \"a\\u00e9 é 😀 \\n\", \"n\": 123456789012.123456,  \"x\":\t1}";
        $put(row('a', body: $body), row('a', 2), row('b'), row('a', kind: 'payout', key: '00000000-0000-4000-8000-payout'));
        $s->install();
        same(2, $s->newest('payment', 'a')->attempt);
        ($e->update)($s, static function () use ($s, $body): void {
            same('a1 a2', names($s->attempts('payment', 'a')));
            same($body, $s->attempts('payment', 'a')[0]->body);
            same('a1', names($s->attempts('payout', 'a')));
            same('', names($s->attempts('payment', 'c')));
            same(false, $s->put(row('a', 2, key: '00000000-0000-4000-8000-other', body: '{}')));
            same('a1 a2', names($s->attempts('payment', 'a'))); // it goes on
        });
        throws(LogicException::class, static fn () => ($e->update)($s, static function () use ($s): void {
            $s->put(row('z'));
            same('z1', names($s->attempts('payment', 'z')));
            throw new LogicException('no');
        }));
        same(null, $s->newest('payment', 'z'));
        $order = "commande n° 7, 你好 😀 '\"; -- ? :p1";
        $named = row('t', key: '00000000-0000-4000-8000-text');
        $named->order = $order;
        $put($named);
        same($order, $s->newest('payment', $order)->order);
        same('a2', names([($e->open)()->newest('payment', 'a')])); // another program sees it
    });
    $case('due, open, since, attention', static function (Store $s, Closure $put): void {
        $put(row('a', next_at: START + 1000), row('b', next_at: START - 1000), row('c', state: Row::SENDING), row('d', state: Row::TAKEN), row('e', state: Row::TAKEN, next_at: START + 60_000));
        same(['b1 c1', 'b1', 'b1 c1 a1'], [names($s->due(START, 10)), names($s->due(START, 1)), names($s->due(START + 1000, 10))]);
        same(['d1', 'd1 e1', 'd1'], [names($s->open(START, 10)), names($s->open(START + 60_000, 10)), names($s->open(START + 60_000, 1))]);
        $put(row('f', state: Row::REFUSED, created_at: START + 1), row('g', state: Row::LAPSED, created_at: START + 2), row('h', state: Row::LOST, created_at: START + 3), row('i', state: Row::TAKEN, problem: Row::NEEDS_ATTENTION, created_at: START + 4), row('j', created_at: START - 1));
        same(['f1 g1 h1 i1', 'h1 i1', 'f1'], [names($s->attention(START, 10)), names($s->attention(START + 3, 10)), names($s->attention(START, 1))]);
        same(['a1 b1', 'i1'], [names($s->since(START, '', 2)), names($s->since(START, row('h')->key, 9))]);
    });
    $case('count is a compare and swap', static function (Store $s, Closure $put, Engine $e): void {
        $put(row('a'));
        $r = $s->newest('payment', 'a');
        same(true, $s->count($r, START + 10_000, START + 11_000));
        $got = $s->newest('payment', 'a');
        same([Row::SENDING, 1, START + 10_000, START + 11_000], [$got->state, $got->tries, $got->lease, $got->next_at]);
        same([false, true], [$s->count($r, START + 12_000, START), $s->count($got, START + 12_000, START)]);
        $s->settle(new Settlement($r->key, state: Row::TAKEN));
        same(false, $s->count($got, START + 13_000, START)); // it is taken
        $put(row('b'));
        $r = $s->newest('payment', 'b');
        $won = together(6, static fn (int $n) => ($e->open)()->count($r, START + $n + 1, START) ? 'won' : 'lost');
        sort($won);
        same(['lost', 'lost', 'lost', 'lost', 'lost', 'won'], $won);
        same(1, $s->newest('payment', 'b')->tries);
    });
    $case('a count inside your transaction is refused', static function (Store $s, Closure $put, Engine $e): void {
        $put(row('a'));
        $r = $s->newest('payment', 'a');
        throws(InsideTransaction::class, static fn () => ($e->update)($s, static fn () => $s->count($r, 1, 2)));
        same(0, $s->newest('payment', 'a')->tries);
    });
    $case('settle', static function (Store $s, Closure $put): void {
        $put(row('a'));
        $key = row('a')->key;
        same(false, $s->settle(new Settlement($key, [Row::SENDING, Row::TAKEN], state: Row::ENDED)));
        $s->count($s->newest('payment', 'a'), START + 10_000, START);
        same([false, true], [$s->settle(new Settlement($key, lease: START + 10_001, state: Row::WRITTEN)), $s->settle(new Settlement($key, lease: START + 10_000, state: Row::WRITTEN))]);
        $s->settle(new Settlement($key, remote_id: 'r1', status: 'pending', problem: 'p'));
        $before = $s->newest('payment', 'a');
        $s->settle(new Settlement($key, next_at: START + 3_600_000));
        $before->next_at = START + 3_600_000;
        same(get_object_vars($before), get_object_vars($s->newest('payment', 'a')));
        $s->settle(new Settlement($key, problem: ''));
        same('', $s->newest('payment', 'a')->problem); // an empty text is a value
        same(false, $s->settle(new Settlement('00000000-0000-4000-8000-nobody', state: Row::TAKEN)));
    });
    $case('apply', static function (Store $s, Closure $put, Engine $e): void {
        $put(row('a'), row('a', 2), row('b'), row('o', kind: 'payout'));
        $key = row('a')->key;
        throws(LogicException::class, static fn () => $s->apply('p1', 'payment', $key, static function (mixed $tx) use ($e): never {
            ($e->set)($tx, 'no');
            throw new LogicException('no');
        }));
        same('', ($e->get)($s));
        $s->apply('p1', 'payment', $key, static function (mixed $tx, Subject $x, array $rows) use ($e, $key): Decision {
            same(['p1', 0, [], 0, 'a1 a2'], [$x->id, $x->rank, $x->seen, $x->sequence, names($rows)]);
            ($e->set)($tx, 'yours');

            return new Decision(new Subject('p1', 3, ['pending', 'success'], 7), new Settlement($key, state: Row::ENDED, remote_id: 'p1', status: 'success'), new Cursor('log', 'l', 5));
        });
        same('yours', ($e->get)($s));
        $s->apply('p1', 'payment', '', static function (mixed $tx, Subject $x, array $rows): Decision {
            same([3, ['pending', 'success'], 7, []], [$x->rank, $x->seen, $x->sequence, $rows]);

            return new Decision();
        });
        $s->apply('p2', 'payment', row('o')->key, static fn (mixed $tx, Subject $x, array $rows) => same([], $rows) ?? new Decision($x)); // kinds are kept apart
        $got = $s->newest('payment', 'a');
        same(['l', 5, 'a2'], [$s->cursor('log')->log, $s->cursor('log')->after, names([$got])]);
        $calls = together(6, static function () use ($e): string {
            $first = 'later';
            ($e->open)()->apply('p9', 'payment', '', static function (mixed $tx, Subject $x) use (&$first): Decision {
                $first = in_array('success', $x->seen, true) ? 'later' : 'first';

                return new Decision(new Subject($x->id, 3, ['success']));
            });

            return $first;
        });
        sort($calls);
        same(['first', 'later', 'later', 'later', 'later', 'later'], $calls);
        $alone = together(2, static function (int $n) use ($e): string {
            $key = row('a', $n + 1)->key;
            $alone = '';
            ($e->open)()->apply("q$n", 'payment', $key, static function (mixed $tx, Subject $x, array $rows) use ($key, &$alone): Decision {
                $alone = array_filter($rows, static fn (Row $r) => $r->key !== $key && $r->status === 'new') ? 'second' : 'alone';
                usleep(20_000);

                return new Decision($x, new Settlement($key, status: 'new'));
            });

            return $alone;
        });
        sort($alone);
        same(['alone', 'second'], $alone);
    });
    $case('cursors', static function (Store $s): void {
        $at = static fn (string $name) => array_values(get_object_vars($s->cursor($name)));
        same(['log', '', 0], $at('log'));
        foreach ([5, 3, 5, 9, 8] as $after) {
            $s->moveCursor(new Cursor('log', 'l', $after), false);
        }
        $s->moveCursor(new Cursor('log', 'm', 11), false);
        same(['log', 'l', 9], $at('log'));
        $s->moveCursor(new Cursor('log', 'm', 2), true);
        $s->moveCursor(new Cursor('other', 'l', 7), false);
        same([['log', 'm', 2], ['other', 'l', 7]], [$at('log'), $at('other')]);
    });
    $case('one attempt by many is put once', static function (Store $s, Closure $put, Engine $e): void {
        $won = together(5, static function (int $n) use ($e): string {
            for ($i = 0; $i < 50; $i++) { // a transaction that another one undid is yours to repeat
                $s = ($e->open)();
                $first = false;
                try {
                    ($e->update)($s, static function () use ($s, $n, &$first): void {
                        $first = $s->put(row('a', key: "00000000-0000-4000-8000-worker$n"));
                    });

                    return $first ? 'won' : 'lost';
                } catch (PDOException) {
                    usleep(10_000);
                }
            }

            return 'never';
        });
        sort($won);
        same(['lost', 'lost', 'lost', 'lost', 'won'], $won);
    });
}

storeSuite('files', static function (): Engine {
    $folder = folder();

    return new Engine(
        static fn () => new FileStore($folder),
        static fn (FileStore $s, Closure $work) => $s->update(static fn (FileTx $tx) => $work()),
        static fn (FileTx $tx, string $value) => $tx->set('value', $value),
        static fn (FileStore $s) => $s->get('value'),
    );
});

test('files: a line that is cut goes', static function (): void {
    $folder = folder();
    $s = new FileStore($folder);
    $s->update(static fn (FileTx $tx) => $tx->set('a', '1'));
    file_put_contents("$folder/till.jsonl", '{"notes": {"a": "2"', FILE_APPEND);
    same('1', (new FileStore($folder))->get('a'));
    $s->update(static fn (FileTx $tx) => $tx->set('b', '3'));
    same(['a' => '1', 'b' => '3'], (new FileStore($folder))->all());
});

/** An engine on PDO; connect makes a connection to a database that is the test's own. */
function pdoEngine(Closure $connect): Engine
{
    $last = null;
    $connect()->exec('CREATE TABLE yours (value VARCHAR(20))');

    return new Engine(
        static function () use ($connect, &$last): PdoStore {
            $last = $connect();

            return new class ($last) extends PdoStore {
                public function __construct(public PDO $connection)
                {
                    parent::__construct($connection);
                }
            };
        },
        static function (PdoStore $s, Closure $work): void {
            $s->connection->beginTransaction();
            try {
                $work();
            } catch (Throwable $e) {
                $s->connection->rollBack();
                throw $e;
            }
            $s->connection->commit();
        },
        static fn (PDO $tx, string $value) => $tx->prepare('INSERT INTO yours VALUES (?)')->execute([$value]),
        static fn (PdoStore $s) => (string) ($s->connection->query('SELECT value FROM yours')->fetchAll(PDO::FETCH_COLUMN)[0] ?? ''),
    );
}

storeSuite('sqlite', static function (): Engine {
    $folder = folder();
    $kept = new PDO("sqlite:$folder/shop.db");
    $kept->exec('PRAGMA journal_mode = WAL');

    return pdoEngine(static function () use ($folder): PDO {
        $pdo = new PDO("sqlite:$folder/shop.db", options: [PDO::ATTR_TIMEOUT => 5]);
        $pdo->exec('PRAGMA synchronous = OFF');

        return $pdo;
    });
});

$url = getenv('TILL_TEST_POSTGRES_URL');
if (!$url || !extension_loaded('pdo_pgsql')) {
    missing('PostgreSQL: there is no TILL_TEST_POSTGRES_URL, or no pdo_pgsql; make sdk has both');
} else {
    storeSuite('postgres', static function () use ($url): Engine {
        $parts = parse_url($url);
        parse_str($parts['query'] ?? '', $query);
        $schema = 'php_' . bin2hex(random_bytes(6));
        $dsn = 'pgsql:dbname=' . ltrim($parts['path'] ?? '', '/') . ';host=' . ($query['host'] ?? $parts['host'] ?? '') . (isset($parts['port']) ? ';port=' . $parts['port'] : (isset($query['port']) ? ';port=' . $query['port'] : ''));
        $connect = static function () use ($dsn, $parts, $schema): PDO {
            $pdo = new PDO($dsn, isset($parts['user']) ? urldecode($parts['user']) : null, isset($parts['pass']) ? urldecode($parts['pass']) : null);
            $pdo->exec("SET search_path TO $schema");

            return $pdo;
        };
        $connect()->exec("CREATE SCHEMA $schema");

        return pdoEngine($connect);
    });
}

$mariadbd = trim((string) shell_exec('command -v mariadbd || ls /usr/sbin/mariadbd 2>/dev/null'));
if ($mariadbd === '' || !extension_loaded('pdo_mysql')) {
    missing('MariaDB: there is no mariadbd, or no pdo_mysql; make sdk has both');
} else {
    storeSuite('mariadb', static function () use ($mariadbd): Engine {
        static $socket = null;
        if ($socket === null) {
            $folder = folder();
            mkdir("$folder/data");
            $socket = "$folder/socket";
            $server = proc_open([$mariadbd, '--no-defaults', "--datadir=$folder/data", "--socket=$socket", '--skip-networking', '--skip-grant-tables', '--user=root', "--pid-file=$folder/pid", '--innodb-flush-log-at-trx-commit=0'], [2 => ['file', '/dev/null', 'w']], $pipes);
            $pid = getmypid();
            register_shutdown_function(static function () use ($server, $pid): void {
                if (getmypid() === $pid) {
                    proc_terminate($server, SIGKILL);
                }
            });
            for ($end = time() + 60;;) {
                try {
                    new PDO("mysql:unix_socket=$socket", 'root');
                    break;
                } catch (PDOException $e) {
                    time() < $end ? usleep(100_000) : throw $e;
                }
            }
        }
        $name = 'shop' . bin2hex(random_bytes(6));
        (new PDO("mysql:unix_socket=$socket", 'root'))->exec("CREATE DATABASE $name");

        return pdoEngine(static fn () => new PDO("mysql:unix_socket=$socket;dbname=$name;charset=utf8mb4", 'root'));
    });
}

test('the schema is that of all SDKs', static function (): void {
    foreach (['sqlite', 'postgres', 'mysql'] as $name) {
        same(file_get_contents(__DIR__ . "/../../schema/$name.sql"), file_get_contents(__DIR__ . "/../src/schema/$name.sql"), $name);
    }
});

test('tables of the first release get their column', function (): void {
    $pdo = new PDO('sqlite::memory:');
    $s = new Till\Store\PdoStore($pdo);
    $s->install();
    $pdo->exec('ALTER TABLE till_outbox DROP COLUMN details');
    $pdo->exec("INSERT INTO till_outbox VALUES ('k-1', 'payment', 'o-1', 1, '{}', 'refused', 1, 0, 0, 0, NULL, '', 'validation_failed', 1)");
    $s->install();
    $s->install();
    same(['validation_failed', ''], [$s->newest('payment', 'o-1')->problem, $s->newest('payment', 'o-1')->details]);
    same(true, $s->settle(new Till\Settlement('k-1', details: '{"detail": "« Airtel » 😀"}')));
    same('{"detail": "« Airtel » 😀"}', $s->newest('payment', 'o-1')->details);
});
