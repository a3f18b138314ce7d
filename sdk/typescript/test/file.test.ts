import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileStore, type FileStore, type FileTx } from "../src/node/index.js";
import { storeTest } from "./storetest.js";

const base = mkdtempSync(join(tmpdir(), "till-file-"));
after(() => rmSync(base, { recursive: true }));
let n = 0;
const folder = () => join(base, String(n++));

const stores: FileStore[] = [];
after(() => Promise.all(stores.map((s) => s.close())));

async function opened(path: string): Promise<FileStore> {
  const store = await fileStore(path);
  stores.push(store);
  return store;
}

storeTest<FileTx>("the file store", async () => {
  const path = folder();
  const store = await opened(path);
  return { store, update: (fn) => store.update(fn), open: () => opened(path), set: (tx, value) => tx.set("mine", value), get: () => store.get("mine") };
});

test("a line without an end is that of a program that died", async () => {
  const path = folder();
  const store = await opened(path);
  await store.update((tx) => tx.set("a", "1"));
  appendFileSync(join(path, "till.jsonl"), '{"notes":{"a":"2"');
  assert.equal(await store.get("a"), "1");
  assert.equal(await (await opened(path)).get("a"), "1");
  await store.update((tx) => tx.set("a", "3"));
  assert.equal(await (await opened(path)).get("a"), "3");
});

test("a turn ends with its program, and is not taken from one that lives", async () => {
  const path = folder();
  const store = await opened(path);
  const last = () => readdirSync(path).filter((f) => /^turn\.\d+$/.test(f)).sort().at(-1)!;
  writeFileSync(join(path, last()), "999999999 1 dead");
  assert.equal(await store.get("a"), "");
  writeFileSync(join(path, last()), `${process.pid} 1 before-this-process-began`);
  assert.equal(await store.get("a"), "");
  const alive = spawn("sleep", ["60"]);
  writeFileSync(join(path, last()), `${alive.pid}  other`);
  const waiting = store.get("a").then(() => "done");
  assert.equal(await Promise.race([waiting, new Promise((r) => setTimeout(r, 100, "waits"))]), "waits");
  alive.kill("SIGKILL");
  assert.equal(await waiting, "done");
});

test("programs that share a folder and are killed lose nothing and count nothing twice", async () => {
  const path = folder();
  await (await fileStore(path)).close();
  const program = `
    import { fileStore } from ${JSON.stringify(new URL("../src/node/index.js", import.meta.url).href)};
    const store = await fileStore(process.argv[1]);
    for (;;) {
      const n = await store.update((tx) => { const n = Number(tx.get("n")) + 1; tx.set("n", String(n)); return n; });
      process.stdout.write(n + "\\n");
    }`;
  const told: number[] = [];
  const one = (ms: number) =>
    new Promise<void>((resolve) => {
      const child = spawn(process.execPath, ["--input-type=module", "-e", program, path]);
      let text = "";
      child.stdout.on("data", (d: Buffer) => {
        if (!text) setTimeout(() => child.kill("SIGKILL"), ms);
        text += d;
      });
      child.stderr.on("data", (d: Buffer) => console.error(String(d)));
      child.on("close", () => (told.push(...text.split("\n").slice(0, -1).map(Number)), resolve()));
    });
  await Promise.all([50, 120, 200].map(one));
  const store = await opened(path);
  const counted = Number(await store.get("n"));
  assert.equal(new Set(told).size, told.length, "two had the same turn");
  assert.ok(told.length > 3 && Math.max(...told) <= counted && counted <= told.length + 3, `${told.length} were told, ${counted} were counted`);
});
