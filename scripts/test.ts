// Runs a suite of tests and ends with one plain line: `N passed, N failed, N skipped`. Without `--suite` it is every test that
// needs neither a trainer nor an agent framework.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { TestCase, TestModule } from 'vitest/node'
import { startVitest } from 'vitest/node'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals: filters } = parseArgs({ options: { suite: { type: 'string' } }, allowPositionals: true })
const { suite } = values

let failed = 0
let passed = 0
const skipped: string[] = []

if (suite === undefined && filters.length === 0) {
  const check = spawnSync(process.execPath, [...process.execArgv, fileURLToPath(new URL('check.ts', import.meta.url))], {
    cwd: root,
    stdio: 'inherit',
  })
  if (check.status === 0) passed += 1
  else failed += 1
}

const vitest = await startVitest('test', filters, {
  root,
  watch: false,
  ...(suite !== undefined && { config: fileURLToPath(new URL(`../test/${suite}/vitest.config.ts`, import.meta.url)) }),
  reporters: [
    'default',
    {
      onTestCaseResult(test: TestCase) {
        const { state } = test.result()
        if (state === 'passed') passed += 1
        else if (state === 'failed') failed += 1
        else skipped.push(`${test.module.relativeModuleId} > ${test.fullName}: ${skipReason(test)}`)
      },
      onTestModuleEnd(module: TestModule) {
        failed += module.errors().length
      },
    },
  ],
})

function skipReason(test: TestCase): string {
  const result = test.result()
  return (result.state === 'skipped' && result.note) || 'no reason given'
}

const unhandled = vitest.state.getUnhandledErrors().length
failed += unhandled
await vitest.close()

if (skipped.length > 0) console.log(`\nSkipped:\n${skipped.map((line) => `  ${line}`).join('\n')}`)
console.log(`\n${passed} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}`)
process.exit(failed > 0 || passed === 0 ? 1 : 0)
