import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Turn } from '@aworld-train/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { openTurnLog } from './turn-log.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'turn-log-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const turn = (content: string): Turn => ({
  version: 2,
  index: 0,
  agent: 'client',
  trajectory: 'client',
  attempt: 0,
  parent: null,
  branchReasons: ['root'],
  promptTokenIds: Int32Array.of(1),
  completionTokenIds: Int32Array.of(2),
  rolloutLogprobs: Float32Array.of(-0.5),
  weightVersions: [{ fromToken: 0, version: 0 }],
  finishReason: { unified: 'stop', raw: 'stop' },
  delivered: 'delivered',
  messagesDelta: [{ role: 'user', content: 'Is 3 even?' }],
  message: { role: 'assistant', content },
  toolCalls: [],
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 8, stop: [], seed: 0 },
  usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0 },
  timing: { startedAt: 1, endedAt: 2 },
  capture: { tokens: 'token-in', logprobs: 'temperature' },
})

const contents = (path: string) =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => z.decode(Turn, JSON.parse(line)).message.content)

async function record(path: string, content: string): Promise<void> {
  const log = await openTurnLog(path)
  await log.append(turn(content))
  await log.close()
}

test.each([1, 30, 200_000])(
  'a line that a crash cut off after %i bytes is dropped, and recording goes on behind the last whole one',
  async (kept) => {
    const path = join(folder, 'turns.jsonl')
    await record(path, 'first')
    appendFileSync(path, readFileSync(path, 'utf8').replace('first', 'x'.repeat(300_000)).slice(0, kept))
    await record(path, 'second')
    expect(contents(path)).toEqual(['first', 'second'])
  },
)

test('another file is left as it is', async () => {
  const path = join(folder, 'notes.txt')
  writeFileSync(path, 'buy milk')
  await expect(openTurnLog(path)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('its last line is no turn and has no end; name a file that can be written'),
  })
  expect(readFileSync(path, 'utf8')).toBe('buy milk')
})

test.skipIf(process.platform === 'win32')('a turn that a full disk has no room for leaves nothing in the file', async () => {
  const path = join(folder, 'turns.jsonl')
  await record(path, 'first')
  const line = readFileSync(path, 'utf8').trimEnd()
  const script = `
    import { Turn } from '@aworld-train/core'
    import { z } from 'zod'
    const { openTurnLog } = await import(process.argv[1])
    const log = await openTurnLog(process.argv[2])
    await log.append(z.decode(Turn, JSON.parse(process.argv[3]))).catch(({ code, message }) => console.log(code, message))
    await log.close()`
  const source = fileURLToPath(new URL('./turn-log.ts', import.meta.url))
  const { execPath } = process
  const node = [execPath, '--input-type=module', '-e', script, source, path, line]
  // One block of 1,024 bytes holds the first line and a part of the second.
  const output = execFileSync('bash', ['-c', 'ulimit -f 1; exec "$@"', 'bash', ...node], {
    encoding: 'utf8',
    cwd: fileURLToPath(new URL('.', import.meta.url)),
  })
  expect(output).toMatch(/^STORE_FAILED The turn was not recorded .*free space there/)
  expect(contents(path)).toEqual(['first'])
})
