// Runs a suite of tests and ends with one plain line: `N passed, N failed, N skipped`. Without `--suite` it is every test that
// needs no installation; with `--quick` only tests that are tagged so.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inspect, parseArgs } from 'node:util'
import type { TestCase, TestModule, TestSuite } from 'vitest/node'
import { startVitest } from 'vitest/node'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals: filters } = parseArgs({
  options: { suite: { type: 'string' }, quick: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const { suite, quick } = values

let failed = 0
let passed = 0
let leftOut = 0
const skipped: string[] = []
const broken: string[] = []

if (suite === undefined && filters.length === 0) {
  const check = spawnSync(process.execPath, [...process.execArgv, fileURLToPath(new URL('check.ts', import.meta.url))], {
    cwd: root,
    stdio: 'inherit',
  })
  if (check.status === 0) passed += 1
  else fail('npm run check', [])
}

const vitest = await startVitest('test', filters, {
  root,
  watch: false,
  ...(quick && { tagsFilter: ['quick'] }),
  ...(suite !== undefined && { config: fileURLToPath(new URL(`../test/${suite}/vitest.config.ts`, import.meta.url)) }),
  reporters: [
    'default',
    {
      onTestCaseResult(test: TestCase) {
        const { state } = test.result()
        if (state === 'passed') passed += 1
        else if (state === 'failed') fail(`${test.module.relativeModuleId} > ${test.fullName}`, test.result().errors ?? [])
        else if (quick && !test.tags.includes('quick')) leftOut += 1
        else skipped.push(`${test.module.relativeModuleId} > ${test.fullName}: ${skipReason(test)}`)
      },
      // A hook that fails is an error of what it stands in, and leaves the tests there skipped.
      onTestSuiteResult(suite: TestSuite) {
        for (const error of suite.errors()) fail(`${suite.module.relativeModuleId} > ${suite.fullName}`, [error])
      },
      onTestModuleEnd(module: TestModule) {
        for (const error of module.errors()) fail(module.relativeModuleId, [error])
      },
    },
  ],
})

function fail(what: string, errors: readonly { message: string }[]): void {
  failed += 1
  broken.push(`${what}${errors.map(({ message }) => `\n      ${message.split('\n').slice(0, 12).join('\n      ')}`).join('')}`)
}

function skipReason(test: TestCase): string {
  const result = test.result()
  return (result.state === 'skipped' && result.note) || 'no reason given'
}

for (const error of vitest.state.getUnhandledErrors()) {
  // What a worker threw comes as a plain object, which may not even become text.
  const { message } = Object(error) as { message?: unknown }
  fail('an error that no test caught', [{ message: typeof message === 'string' ? message : inspect(error) }])
}
await vitest.close()

if (leftOut > 0) console.log(`\n${leftOut} tests belong to the full form of this suite only.`)
if (skipped.length > 0) console.log(`\nSkipped:\n${skipped.map((line) => `  ${line}`).join('\n')}`)
// Last of all, where a log that is cut at its beginning still has it.
if (broken.length > 0) console.log(`\nFailed:\n${broken.map((line) => `  ${line}`).join('\n')}`)
console.log(`\n${passed} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}`)
process.exit(failed > 0 || (passed === 0 && skipped.length === 0) ? 1 : 0)
