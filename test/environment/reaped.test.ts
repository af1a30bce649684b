// @module-tag quick
import { openParserJail, openProgramJail, openSandbox } from '@aworld-train/tools/sandbox'
import { expect, test, vi } from 'vitest'
import { unreapedBelowUs } from './processes.ts'

const signal = new AbortController().signal
const echo = new URL('../../packages/tools/src/sandbox/testing/hostile-parser.ts', import.meta.url)

test('a thousand operations of a workspace leave no process behind', { timeout: 300_000 }, async () => {
  const sandbox = await openSandbox({ tier: 'bubblewrap' })
  const workspace = await sandbox.workspace({}, signal)
  const shell = await workspace.shell(signal)
  const operations = [
    (name: string) => workspace.put(name, Buffer.from('x'), signal),
    (name: string) => workspace.get(name, 10, signal),
    (name: string) => workspace.run({ command: ['test', '-f', name], timeoutMs: 20_000 }, signal),
    // Processes whose parent ends before them.
    (name: string) => shell.execute(`(sleep 0.01 & setsid rm ${name} &)`, 20_000, signal),
  ]
  const rounds = Array.from({ length: 250 }, (_, index) => `file${index}`)
  await Promise.all(
    [0, 1, 2, 3].map(async (part) => {
      for (const name of rounds.filter((_, index) => index % 4 === part)) for (const operate of operations) await operate(name)
    }),
  )
  await vi.waitUntil(() => unreapedBelowUs().length === 0, { timeout: 60_000 }).catch(() => {})
  expect(unreapedBelowUs()).toEqual([])
  await sandbox.close()
})

test('jails of parsers and programs leave no process behind', async () => {
  const [parsers, programs] = [await openParserJail({ isolation: 'bubblewrap' }), await openProgramJail()]
  for (let index = 0; index < 10; index++) await parsers.parse(echo, Buffer.from('x'), { what: 'echo' }, signal)
  // A program that runs long leaves processes to the first one of its jail.
  const script = 'for i in $(seq 100); do (sleep 0.01 &); done; sleep 0.2; ps -eo stat= | grep -c Z; for i in $(seq 9); do (true &); done'
  let output = ''
  for (let index = 0; index < 10; index++) {
    const child = programs.spawn({ command: ['bash', '-c', script], env: {}, directory: null, readable: [] })
    child.stdout!.on('data', (chunk) => {
      output += chunk
    })
    await new Promise((resolve) => child.once('close', resolve))
  }
  expect(output).toBe('0\n'.repeat(10))
  expect(unreapedBelowUs()).toEqual([])
  await Promise.all([parsers.close(), programs.close()])
})
