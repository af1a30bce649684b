// Runs a suite of tests and ends with one plain line: `N passed, N failed, N skipped`. Without `--suite` it is every test that
// needs no installation, in a temporary folder that the tests must leave empty; with `--quick` only tests that are tagged so; with
// `-t NAME` those whose name matches.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect, parseArgs } from 'node:util'
import type { TestCase, TestModule, TestSuite } from 'vitest/node'
import { startVitest } from 'vitest/node'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals: filters } = parseArgs({
  options: {
    suite: { type: 'string' },
    quick: { type: 'boolean', default: false },
    testNamePattern: { type: 'string', short: 't' },
  },
  allowPositionals: true,
})
const { suite, quick, testNamePattern } = values

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

const temporary = suite === undefined ? mkdtempSync(join(tmpdir(), 'aworld-tests-')) : null
if (temporary !== null) {
  // Some tests run programs as another user.
  chmodSync(temporary, 0o755)
  for (const name of ['TMPDIR', 'TEMP', 'TMP']) process.env[name] = temporary
  process.once('exit', () => rmSync(temporary, { recursive: true, force: true, maxRetries: 3 }))
}

const vitest = await startVitest('test', filters, {
  root,
  watch: false,
  ...(quick && { tagsFilter: ['quick'] }),
  ...(testNamePattern !== undefined && { testNamePattern }),
  ...(suite !== undefined && { config: fileURLToPath(new URL(`../test/${suite}/vitest.config.ts`, import.meta.url)) }),
  reporters: [
    'default',
    {
      onTestCaseResult(test: TestCase) {
        const { state } = test.result()
        if (state === 'passed') passed += 1
        else if (state === 'failed') fail(`${test.module.relativeModuleId} > ${test.fullName}`, test.result().errors ?? [])
        else if ((quick && !test.tags.includes('quick')) || (testNamePattern !== undefined && skipNote(test) === null)) leftOut += 1
        else skipped.push(`${test.module.relativeModuleId} > ${test.fullName}: ${skipNote(test) ?? 'no reason given'}`)
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

function skipNote(test: TestCase): string | null {
  const result = test.result()
  return (result.state === 'skipped' && result.note) || null
}

for (const error of vitest.state.getUnhandledErrors()) {
  // What a worker threw comes as a plain object, which may not even become text.
  const { message } = Object(error) as { message?: unknown }
  fail('an error that no test caught', [{ message: typeof message === 'string' ? message : inspect(error) }])
}
await vitest.close()
const leftBehind = temporary === null ? [] : readdirSync(temporary)
if (leftBehind.length > 0) fail('the temporary folder is not empty', [{ message: leftBehind.join('\n') }])

if (leftOut > 0)
  console.log(`\n${leftOut} tests ${testNamePattern === undefined ? 'belong to the full form of this suite only' : 'have another name'}.`)
if (skipped.length > 0) console.log(`\nSkipped:\n${skipped.map((line) => `  ${line}`).join('\n')}`)
// Last of all, where a log that is cut at its beginning still has it.
if (broken.length > 0) console.log(`\nFailed:\n${broken.map((line) => `  ${line}`).join('\n')}`)
console.log(`\n${passed} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}`)
process.exit(failed > 0 || (passed === 0 && skipped.length === 0) ? 1 : 0)
