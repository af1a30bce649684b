import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { withDeadline } from './with-deadline.ts'

const late = () => new Error('too late')

/** Blocks this process, as if it were stopped or busy. */
function standStill(milliseconds: number): void {
  const until = performance.now() + milliseconds
  while (performance.now() < until);
}

test('work that never ends is late', async () => {
  await expect(withDeadline(new Promise(() => {}), 50, late)).rejects.toThrow('too late')
})

test('work that ended while the process stood still is not late', async () => {
  const work = withDeadline(readFile(fileURLToPath(import.meta.url), 'utf8'), 200, late)
  standStill(400)
  expect(await work).toContain('not late')
})
