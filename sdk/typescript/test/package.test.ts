import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { createContext, Script } from "node:vm";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import ts from "typescript";

const root = new URL("../../", import.meta.url);
const path = (name: string): string => fileURLToPath(new URL(name, root));
const manifest = JSON.parse(readFileSync(path("package.json"), "utf8")) as { version: string; dependencies?: object; exports: Record<string, { types: string; default: string } | string> };
const entries = Object.values(manifest.exports).filter((e) => typeof e === "object");

/** The code as it goes over the wire: bundled, minified. */
async function bundle(code: string, format: "esm" | "iife" = "esm"): Promise<string> {
  const out = await build({ stdin: { contents: code, resolveDir: path("dist/src") }, bundle: true, minify: true, format, platform: "neutral", target: "es2022", write: false, globalName: "sdk" });
  return out.outputFiles[0]!.text;
}

const size = (code: string): number => gzipSync(code, { level: 9 }).length;

test("it is small", async () => {
  const core = size(await bundle('export { Till, TillError, Refused, Unavailable, Unclear, Misuse, Money, Phone } from "./index.js"'));
  const teller = size(await bundle('export { Till, Teller } from "./index.js"; export { pgStore } from "./stores/index.js"'));
  console.log(`minified and gzipped: core ${core} bytes, client, teller and a store ${teller} bytes`);
  assert.ok(core <= 8000, `the core has ${core} bytes`);
  // It was 16 500 until the teller opened checkouts. They take 900 bytes: what their news is, whose an ask is, and what
  // is done where a page shows another amount than was wished for, which no shop is to write itself.
  assert.ok(teller <= 17_100, `with teller and a store it has ${teller} bytes`);
});

test("it runs where there is no Node", async () => {
  const code = await bundle('export * from "./index.js"; export * from "./stores/index.js"', "iife");
  const { fetch, Headers, Request, Response, URL, URLSearchParams, TextEncoder, TextDecoder, AbortController, crypto, atob, btoa, setTimeout, clearTimeout } = globalThis;
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  const world = createContext({ port, fetch, Headers, Request, Response, URL, URLSearchParams, TextEncoder, TextDecoder, AbortController, crypto, atob, btoa, setTimeout, clearTimeout });
  new Script(code).runInContext(world);
  const word = await (new Script(`new sdk.Till({ baseUrl: "http://127.0.0.1:" + port, apiKey: "k", tries: 1 }).wallets.list().catch((e) => e.name + " " + e.reason)`).runInContext(world) as Promise<string>);
  assert.equal(word, "Unavailable unreachable");
});

test("it needs nothing, and every entry has its types", () => {
  assert.equal(manifest.dependencies, undefined);
  assert.equal(manifest.version, readFileSync(path("../VERSION"), "utf8").trim());
  for (const e of entries) for (const file of [e.types, e.default]) assert.ok(existsSync(path(file)), file);
  const imports = readdirSync(path("dist/src"), { recursive: true, withFileTypes: true })
    .filter((f) => f.isFile())
    .flatMap((f) => [...readFileSync(`${f.parentPath ?? f.path}/${f.name}`, "utf8").matchAll(/from "([^."][^"]*)"/g)].map((m) => `${f.parentPath ?? f.path}: ${m[1]}`));
  assert.deepEqual(imports.filter((i) => !/dist\/src\/node: node:/.test(i)), []);
});

/** Not for its types alone either. */
test("no file imports itself by way of others", () => {
  const files = readdirSync(path("src"), { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".ts"));
  const imports = new Map(files.map((f) => [f, ts.preProcessFile(readFileSync(path("src/" + f), "utf8")).importedFiles.map((i) => posix.join(posix.dirname(f), i.fileName.replace(/js$/, "ts")))]));
  const circles: string[] = [];
  const walk = (file: string, way: string[]): void => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(" -> "));
    else for (const other of imports.get(file) ?? []) walk(other, [...way, file]);
    imports.delete(file); // no other circle begins here
  };
  for (const file of files) walk(file, []);
  assert.ok(files.length > 30, "the sources are not where they are looked for");
  assert.deepEqual(circles, []);
});

test("it loads by require where Node can", () => {
  const require = createRequire(import.meta.url);
  const [major, minor] = process.versions.node.split(".").map(Number) as [number, number];
  if (major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19)) assert.equal(typeof (require(path("dist/src/index.js")) as { Till: unknown }).Till, "function");
});

/**
 * What a program can use is written down in surface.txt, so that every removal is seen in review: within
 * a major version there are only additions. TILL_UPDATE=1 npm test writes it anew.
 */
test("the surface is what surface.txt says", () => {
  const files = entries.map((e) => path(e.types));
  const program = ts.createProgram(files, { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, skipLibCheck: true, types: [], lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"] });
  const checker = program.getTypeChecker();
  const printer = ts.createPrinter({ removeComments: true });
  const lines = Object.entries(manifest.exports).flatMap(([name, e]) => {
    if (typeof e !== "object") return [];
    const source = program.getSourceFile(path(e.types))!;
    return checker.getExportsOfModule(checker.getSymbolAtLocation(source)!).map((exported) => {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
      const text = symbol.declarations!.map((d) => {
        const node = ts.isVariableDeclaration(d) ? d.parent : d;
        return printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile()).replace(/^export |declare /gm, "").replace(/\s+/g, " ");
      });
      return `${name} ${exported.name}: ${text.join(" ")}`;
    });
  });
  const got = lines.sort().join("\n") + "\n";
  if (process.env["TILL_UPDATE"]) writeFileSync(path("surface.txt"), got);
  const want = readFileSync(path("surface.txt"), "utf8");
  const gone = want.split("\n").filter((l) => !got.includes(l + "\n"));
  assert.deepEqual(gone, [], "gone or changed");
  assert.equal(got, want, "surface.txt is not what this package offers: TILL_UPDATE=1 npm test");
});
