import { randomUUID } from "node:crypto";
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** How long a turn is waited for between two looks, in ms, at most. */
const lookEvery = 10;
/** How long a turn is waited for in all: a turn is one transaction. */
const maxWait = 60_000;

/** When a process began, where the system tells: a number that was given to another process is not its own. */
function began(pid: number | "self"): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ")[19]!;
  } catch {
    return "";
  }
}

/**
 * One turn at a time, for the programs of one machine. Node has no lock of a file that ends with its
 * program, so turns are numbered: turn.8 can be taken once turn.7 is over or its program has died. A name
 * can be made once only, so of two that try one has it; and the highest number is never deleted, so who
 * comes late finds that it is not the highest. @internal
 */
export class Turns {
  private readonly me = `${process.pid} ${began("self")} ${randomUUID()}`;

  constructor(private readonly folder: string) {}

  /** Waits for a turn, and returns what ends it. */
  async take(): Promise<() => void> {
    for (const until = Date.now() + maxWait; ; ) {
      const end = this.tryOnce();
      if (end) return end;
      if (Date.now() > until) throw new Error(`till: ${this.folder}: another program has not ended its transaction in a minute; turn.* there names its process`);
      await new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * lookEvery));
    }
  }

  private numbers(): number[] {
    return readdirSync(this.folder).filter((n) => /^turn\.\d+$/.test(n)).map((n) => Number(n.slice(5)));
  }

  private path(name: number | string): string {
    return join(this.folder, `turn.${name}`);
  }

  private tryOnce(): (() => void) | undefined {
    const highest = Math.max(0, ...this.numbers());
    if (highest && !this.over(highest)) return undefined;
    const mine = highest + 1;
    const draft = this.path(randomUUID());
    writeFileSync(draft, this.me, { mode: 0o600 });
    try {
      linkSync(draft, this.path(mine)); // with its content, or not at all
    } catch (e) {
      if ((e as NodeJS.ErrnoException).code === "EEXIST") return undefined;
      throw e;
    } finally {
      rmSync(draft, { force: true });
    }
    const others = this.numbers();
    if (others.some((n) => n > mine)) {
      rmSync(this.path(mine), { force: true });
      return undefined;
    }
    for (const n of others) if (n < mine) rmSync(this.path(n), { force: true });
    return () => this.end(mine);
  }

  /** Reports whether a turn has ended, by its program or with it. */
  private over(n: number): boolean {
    let text: string;
    try {
      text = readFileSync(this.path(n), "utf8");
    } catch {
      return false; // a higher one deleted it; look again
    }
    if (text === "over" || text === this.me) return true; // we ask, so ours has ended
    const [pid, start] = text.split(" ") as [string, string];
    try {
      process.kill(Number(pid), 0);
    } catch (e) {
      return (e as NodeJS.ErrnoException).code === "ESRCH";
    }
    const now = began(Number(pid));
    return start !== "" && now !== "" && now !== start;
  }

  private end(n: number): void {
    const draft = this.path(randomUUID());
    writeFileSync(draft, "over", { mode: 0o600 });
    renameSync(draft, this.path(n));
  }
}
