// Every suite after another, in full or, with `--quick`, as far as a few minutes each go. With `--rotate N` the full forms are
// divided into N shares, and the share of the day is run, with `--quick` after the quick forms. Ends with one plain line for all
// of them: `N passed, N failed`.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { fullForms, minutesOf, sharesOf } from './full-forms.ts'

const { quick, rotate } = parseArgs({ options: { quick: { type: 'boolean', default: false }, rotate: { type: 'string' } } }).values
const shares = rotate === undefined ? null : Number(rotate)
if (shares !== null && !(Number.isInteger(shares) && shares > 0)) {
  console.error(`--rotate ${rotate} is no number of days; write for example --rotate 20.`)
  process.exit(2)
}
const runner = fileURLToPath(new URL('test.ts', import.meta.url))
type Suite = readonly [name: string, args: readonly string[]]
/** What `npm test` runs has no shorter form. */
const suites: readonly Suite[] = [
  ...(quick || shares === null
    ? [
        ['test', []] as const,
        ...['packed', 'containers', 'dashboard', 'environment', 'executors', 'frameworks', 'trainers'].map(
          (name): Suite => [`test:${name}`, ['--suite', name, ...(quick ? ['--quick'] : [])]],
        ),
      ]
    : []),
  ...(shares === null ? [] : shareOfTheDay(shares)),
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

/** The files that are run in full today, by suite. */
function shareOfTheDay(count: number): readonly Suite[] {
  const today = Math.floor(Date.now() / 86_400_000) % count
  const share = sharesOf(fullForms, count)[today] ?? []
  console.log(
    `Share ${today + 1} of ${count} of the full forms, about ${minutesOf(share)} min:\n${share.map(({ file }) => `  ${file}`).join('\n')}`,
  )
  return Object.entries(Object.groupBy(share, ({ suite }) => suite)).map(([suite, files = []]) => [
    `test:${suite} in full`,
    ['--suite', suite, ...files.map(({ file }) => file)],
  ])
}

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
