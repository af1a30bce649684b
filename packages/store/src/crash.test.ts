import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { checkHistory } from './testing/check-history.ts'
import { storeWorker } from './testing/child-process.ts'
import { temporaryFolder } from './testing/run-fixtures.ts'

const seed = Number(process.env['STORE_CRASH_SEED'] ?? Date.now() % 1_000_000)
const kills = 10
const rollouts = 300

test(`${kills} kills at random points lose nothing acknowledged and double nothing (STORE_CRASH_SEED=${seed})`, async () => {
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  const random = randomFrom(seed)
  const acknowledged: string[] = []
  for (let kill = 0; kill < kills; kill++) {
    await using worker = storeWorker(['work', path, String(rollouts), ...(kill % 2 === 1 ? ['threaded'] : [])])
    const whileOpening = kill % 3 === 2
    if (!whileOpening) await worker.line((line) => line === 'open')
    await sleep(random() * (whileOpening || kill % 2 === 1 ? 150 : 60))
    worker.process.kill('SIGKILL')
    const { signal, stderr } = await worker.exited
    expect(stderr).toBe('')
    expect(signal).toBe('SIGKILL')
    acknowledged.push(...worker.lines)
    expect(checkHistory(path, acknowledged)).toEqual([])
  }
  await using last = storeWorker(['work', path, String(rollouts)])
  expect(await last.exited).toEqual({ code: 0, signal: null, stderr: '' })
  // Steps that a killed worker had committed are committed again, which must give the same.
  acknowledged.push(...last.lines)
  expect(checkHistory(path, acknowledged)).toEqual([])
  const results = acknowledged.filter((line) => line.startsWith('result '))
  expect(results.length).toBeGreaterThan(rollouts - kills * 8)
})

test('the checker sees what a lost or doubled write looks like', async () => {
  await using folder = await temporaryFolder()
  await using worker = storeWorker(['work', folder.path, '4'])
  await worker.exited
  expect(checkHistory(folder.path, worker.lines)).toEqual([])
  const bad = ['turn rollout-0 0 3', 'result rollout-9 0', 'step 0 rollout-1', 'result rollout-1 0']
  expect(checkHistory(folder.path, [...worker.lines, ...bad])).toEqual([
    'lost: turn rollout-0 0 3',
    'lost: result rollout-9 0',
    'lost: step 0 rollout-1',
    'acknowledged twice: result rollout-1 0',
  ])
})

/** Random numbers from a seed (mulberry32). */
function randomFrom(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
