// Lint, types, exports that nobody imports, generated files, topology and public names.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const node = process.execPath

const checks: readonly (readonly [name: string, args: readonly string[]])[] = [
  ['lint', ['node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.']],
  // Each checker reads the types that it needs for itself: four, the default, take half as much processor time again as two.
  ['types', ['node_modules/typescript/bin/tsc', '-p', '.', '--checkers', '2']],
  ['types of the page', ['node_modules/typescript/bin/tsc', '-p', 'packages/dashboard/page']],
  ['exports that nobody imports', ['node_modules/knip/bin/knip.js', '--no-progress', '--no-config-hints']],
  ['generated files', ['scripts/generate.ts', '--check']],
  [
    'topology and public names',
    ['node_modules/vitest/vitest.mjs', 'run', '--reporter=dot', 'test/topology.test.ts', 'test/exports.test.ts'],
  ],
]

let failures = 0
for (const [name, args] of checks) {
  const started = performance.now()
  const { status } = spawnSync(node, args, { cwd: root, stdio: 'inherit' })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  console.log(`check ${name}: ${status === 0 ? 'ok' : 'FAILED'} (${seconds} s)`)
  if (status !== 0) failures += 1
}
process.exit(failures > 0 ? 1 : 0)
