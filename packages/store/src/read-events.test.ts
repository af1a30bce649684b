import { appendFile, open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunEvent } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { readEvents } from './read-events.ts'
import { temporaryFolder } from './testing/run-fixtures.ts'

const event = (step: number): RunEvent => ({ type: 'step-start', at: step, step, steps: 9 })
const line = (step: number, path = '') => `${JSON.stringify({ type: 'checkpoint-saved', at: step, step, path, best: false })}\n`
const stepsOf = async (path: string, after?: number) =>
  (await readEvents(path, after)).events.map(({ event }) => (event as Extract<RunEvent, { type: 'step-start' }>).step)

/** Reads the whole log, page by page. */
async function readAll(path: string, after = 0): Promise<number[]> {
  const steps: number[] = []
  for (let offset = after; ; ) {
    const { events, next } = await readEvents(path, offset)
    if (next === offset) return steps
    steps.push(...events.map(({ event }) => (event as { step: number }).step))
    offset = next
  }
}

test('a reader goes on behind the event that it has, while the log grows', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  expect(await readEvents(folder.path)).toEqual({ events: [], next: 0 })
  for (const step of [1, 2, 3]) store.appendEvent(event(step))
  await expect.poll(() => stepsOf(folder.path)).toEqual([1, 2, 3])
  const { events, next } = await readEvents(folder.path)
  expect(events[0]).toEqual({ id: Buffer.byteLength(`${JSON.stringify(event(1))}\n`), event: event(1) })
  expect(next).toBe(events[2]?.id)
  expect(await stepsOf(folder.path, events[0]?.id)).toEqual([2, 3])
  expect(await readEvents(folder.path, next)).toEqual({ events: [], next })
  store.appendEvent(event(4))
  await store.close()
  expect(await stepsOf(folder.path, next)).toEqual([4])
})

test('a line that has no end yet is read when it has one', async () => {
  await using folder = await temporaryFolder()
  const log = join(folder.path, 'events.jsonl')
  const torn = line(2)
  await writeFile(log, line(1) + torn.slice(0, 7))
  const { events, next } = await readEvents(folder.path)
  expect(events.map(({ id }) => id)).toEqual([next])
  await appendFile(log, torn.slice(7))
  expect(await stepsOf(folder.path, next)).toEqual([2])
})

test('lines that are no events are passed over, and an offset within a line counts as its end', async () => {
  await using folder = await temporaryFolder()
  await writeFile(
    join(folder.path, 'events.jsonl'),
    `${line(1)}{"type":\n\n{"type":"of-another-version","at":1}\n${line(2, '½'.repeat(9))}${line(3)}`,
  )
  expect(await stepsOf(folder.path)).toEqual([1, 2, 3])
  const { events } = await readEvents(folder.path)
  const [first, second] = events.map(({ id }) => id)
  for (let offset = second! - 1; offset > second! - 60; offset--) expect(await stepsOf(folder.path, offset)).toEqual([3])
  expect(await stepsOf(folder.path, first! - 1)).toEqual([2, 3])
  expect(await stepsOf(folder.path, -5)).toEqual([1, 2, 3])
  expect(await readEvents(folder.path, 10 ** 9)).toEqual({ events: [], next: 10 ** 9 })
})

test('a page is bounded, but for a line that is longer', async () => {
  await using folder = await temporaryFolder()
  const million = 'x'.repeat(1_000_000)
  const log = [line(1, million), line(2, million), line(3, million.repeat(5)), line(4)].join('')
  await writeFile(join(folder.path, 'events.jsonl'), log)
  expect(await stepsOf(folder.path)).toEqual([1])
  expect(await readAll(folder.path)).toEqual([1, 2, 3, 4])
})

test('at the end of a long log only the end is read', async () => {
  await using folder = await temporaryFolder()
  const log = join(folder.path, 'events.jsonl')
  {
    // A file with a hole, of which a full read would be 64 GB.
    await using file = await open(log, 'w')
    await file.write(`\n${line(7)}`, 64e9)
  }
  expect(await stepsOf(folder.path, 64e9 + 1)).toEqual([7])
})

test('a folder without a log is refused', async () => {
  await using folder = await temporaryFolder()
  await expect(readEvents(folder.path)).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
})
