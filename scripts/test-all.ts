// Every suite after another, in full or, with `--quick`, as far as a few minutes each go. Ends with one plain line for all of
// them: `N passed, N failed`.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { quick } = parseArgs({ options: { quick: { type: 'boolean', default: false } } }).values
const runner = fileURLToPath(new URL('test.ts', import.meta.url))
/** What `npm test` runs has no shorter form. */
const suites: readonly (readonly [name: string, args: readonly string[]])[] = [
  ['test', []],
  ...['packed', 'dashboard', 'environment', 'executors', 'frameworks', 'trainers'].map(
    (name) => [`test:${name}`, ['--suite', name, ...(quick ? ['--quick'] : [])]] as const,
  ),
]

let passed = 0
let failed = 0
let skipped = 0
const times: string[] = []
const broken: string[] = []

for (const [name, args] of suites) {
  const started = performance.now()
  const { output, code } = await run(args)
  times.push(`${name} ${((performance.now() - started) / 60_000).toFixed(1)} min`)
  const summary = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$/m.exec(output.slice(output.lastIndexOf('\n\n')))
  if (!summary) {
    failed += 1
    broken.push(`  npm run ${name} printed no summary (exit code ${code}); it ended with:\n${output.slice(-2000)}`)
    continue
  }
  passed += Number(summary[1])
  failed += Number(summary[2])
  skipped += Number(summary[3] ?? 0)
  broken.push(...(/^Failed:\n((?: {2}.*\n)+)/m.exec(output)?.[1]?.trimEnd().split('\n') ?? []))
  if (code !== 0 && summary[2] === '0') {
    failed += 1
    broken.push(`  npm run ${name} ended with exit code ${code}`)
  }
}

// Named again at the end: a log that is cut keeps its end.
if (broken.length > 0) console.log(`\nFailed:\n${broken.join('\n')}`)
console.log(`\n${times.join(', ')}`)
console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exit(failed > 0 || passed === 0 ? 1 : 0)

/** Runs a suite with its output shown as it comes. */
async function run(args: readonly string[]): Promise<{ readonly output: string; readonly code: number | null }> {
  const child = spawn(process.execPath, [runner, ...args], { stdio: ['inherit', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    process.stdout.write(text)
  })
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  return { output, code }
}
