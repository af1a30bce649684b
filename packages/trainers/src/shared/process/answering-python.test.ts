import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { createAnsweringPython } from './answering-python.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'answering python '))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const Answer = z.object({ number: z.number() })

const options = { args: [], task: 'add', trainer: 'verl' }

/** A program that counts its starts, and answers, waits or dies on request. */
function counted(timeoutMs?: number) {
  const python = join(folder, 'python')
  const script = `echo start >> "$0.starts"
while read -r line; do
  case "$line" in
    *wait*) exec sleep 60 ;;
    *die*) echo 'ModuleNotFoundError: no hydra' >&2; exit 3 ;;
    *broken*) echo '{"errors": [{"message": "verl is not installed."}]}' ;;
    *) echo "{\\"number\\": $(wc -l < "$0.starts")}" ;;
  esac
done
echo end >> "$0.ends"`
  writeFileSync(python, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const count = (name: string) => {
    try {
      return readFileSync(`${python}.${name}`, 'utf8').trim().split('\n').length
    } catch {
      return 0
    }
  }
  return { ...createAnsweringPython({ ...options, python, timeoutMs }), count }
}

it('answers all questions with one process, which ends when it is closed', async () => {
  const { ask, close, count } = counted()
  expect(await Promise.all([ask('one', Answer), ask('two', Answer)])).toEqual([{ number: 1 }, { number: 1 }])
  expect([count('starts'), count('ends')]).toEqual([1, 0])
  close()
  await expect.poll(() => count('ends'), { timeout: 60_000 }).toBe(1)
  expect(await ask('three', Answer)).toEqual({ number: 2 })
  close()
})

it('says why there is no answer, and asks another process the next time', async () => {
  const { ask, close } = counted()
  await expect(ask('die', Answer)).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(/no hydra; check that/) })
  await expect(ask('broken', Answer)).rejects.toThrow(/verl is not installed\./)
  expect(await ask('again', Answer)).toEqual({ number: 2 })
  close()
  await expect(createAnsweringPython({ ...options, python: '/nowhere/python' }).ask('one', Answer)).rejects.toThrow(/nowhere\/python/)
})

it('ends a process that is late, or that nobody waits for any more', async () => {
  await expect(counted(300).ask('wait', Answer)).rejects.toThrow(/it took longer than 0\.3 s/)
  const controller = new AbortController()
  const { ask, count } = counted()
  const before = count('starts')
  await expect(ask('wait', Answer, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
  const answer = ask('wait', Answer, controller.signal)
  await expect.poll(() => count('starts'), { timeout: 60_000 }).toBe(before + 1)
  controller.abort(new Error('stop'))
  await expect(answer).rejects.toThrow('stop')
})
