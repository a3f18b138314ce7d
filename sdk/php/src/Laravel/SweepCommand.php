<?php

declare(strict_types=1);

namespace Till\Laravel;

use Illuminate\Console\Command;
use Till\Report;
use Till\SweepFailed;
use Till\Teller;

/** Schedule::command('till:sweep')->everyMinute()->withoutOverlapping() */
final class SweepCommand extends Command
{
    protected $signature = 'till:sweep';

    protected $description = 'Send what is due, read the event log, and list what needs a person';

    public function handle(Teller $teller): int
    {
        try {
            $this->show($teller->sweep());
        } catch (SweepFailed $e) {
            $this->show($e->report);
            $this->error($e->getMessage());

            return 1;
        }

        return 0;
    }

    private function show(Report $r): void
    {
        $this->line("sent $r->sent, waiting $r->waiting, events $r->applied, read $r->read");
        foreach ($r->attention as $a) {
            $this->line("$a->kind $a->order is $a->state: $a->problem");
        }
    }
}
