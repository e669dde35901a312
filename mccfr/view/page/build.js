/* Bundles the page into a folder, whose old content it deletes: node build.js [FOLDER].
   The default folder is ../static, which is committed.  The file sources.sha256 lists the SHA-256 checksum of each
   source file and of each file of the bundle, in the format of sha256sum. */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] || join(here, "../static");
const LIBRARIES = ["preact", "@preact/signals", "@preact/signals-core", "uplot"];

const read = (...path) => readFileSync(join(here, ...path));
const packageOf = (name) => JSON.parse(read("node_modules", name, "package.json"));

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { view: "src/view.jsx", flops: "src/flops.jsx" },
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  supported: { "color-functions": true },
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  outdir: out,
  logLevel: "warning",
});
writeFileSync(join(out, "index.html"), read("index.html"));
const licences = LIBRARIES.map((name) => {
  const { version, license } = packageOf(name);
  return `${name} ${version}, ${license}\n\n${read("node_modules", name, "LICENSE").toString().trim()}\n`;
});
writeFileSync(join(out, "LICENSES.txt"), licences.join(`\n${"-".repeat(80)}\n\n`));

const sha256 = (path) => createHash("sha256").update(readFileSync(path)).digest("hex");
const sources = [".npmrc", "build.js", "index.html", "package-lock.json", "package.json",
  ...readdirSync(join(here, "src")).map((name) => `src/${name}`)].sort();
const lines = [...sources.map((name) => `${sha256(join(here, name))}  ../page/${name}`),
  ...readdirSync(out).sort().map((name) => `${sha256(join(out, name))}  ${name}`)];
writeFileSync(join(out, "sources.sha256"), `${lines.join("\n")}\n`);
