import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createConsoleLog } from './console-log.ts'
import { createJsonLineFollower } from './follow-json-lines.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'awt-run-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

it('hands over a line once it is whole, whatever pieces it comes in', async () => {
  const file = join(folder(), 'metrics.jsonl')
  const values: unknown[] = []
  const broken: string[] = []
  const follower = createJsonLineFollower(
    file,
    (value) => values.push(value),
    (line) => broken.push(line),
  )
  await follower.poll()
  const bytes = Buffer.from('{"a":"ü"}\n')
  appendFileSync(file, bytes.subarray(0, 7))
  await follower.poll()
  expect(values).toEqual([])
  appendFileSync(file, bytes.subarray(7))
  appendFileSync(file, 'not json\n\n{"b":1}\n{"c"')
  await follower.poll()
  await follower.close()
  expect(values).toEqual([{ a: 'ü' }, { b: 1 }])
  expect(broken).toEqual(['not json'])
})

it('keeps at most twice the bound of a console', () => {
  const path = join(folder(), 'verl.log')
  const log = createConsoleLog(path, 20)
  for (let line = 0; line < 20; line++) log.write(`line ${line} …`)
  log.close()
  log.write('nobody reads this')
  expect(readFileSync(path, 'utf8')).toBe('line 18 …\nline 19 …\n')
  expect(readFileSync(`${path}.1`, 'utf8')).toBe('line 16 …\nline 17 …\n')
})
