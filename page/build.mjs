// One script and one style sheet, small enough to stand inside a report; fails when the bundle grows too large.
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const MOST_BYTES = 150 * 1024; // compressed, both together
// Not `.pathname`, which writes a space in a folder's name as %20.
const out = fileURLToPath(new URL("../trimtab/web/static/", import.meta.url));

await build({
  entryPoints: { page: "src/main.ts" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "inline",
  logLevel: "warning",
});
const bytes = ["page.js", "page.css"].reduce((sum, name) => sum + gzipSync(readFileSync(out + name)).length, 0);
console.log(`page: ${(bytes / 1024).toFixed(1)} KB compressed`);
if (bytes > MOST_BYTES) {
  console.error(`the bundle may have ${MOST_BYTES / 1024} KB`);
  process.exit(1);
}
