// @module-tag quick
import { readFileSync } from 'node:fs'
import { openParserJail } from '@aworld-train/tools/sandbox'
import { expect, test, vi } from 'vitest'
import { describeParserJail } from '../../packages/tools/src/sandbox/testing/describe-parser-jail.ts'
import { describePageParsers } from '../../packages/tools/src/testing/describe-page-parsers.ts'
import { describeParsers } from '../../packages/tools/src/testing/describe-parsers.ts'
import { statusesOf } from './processes.ts'

describeParserJail('bubblewrap')
describeParsers('bubblewrap', () => openParserJail({ isolation: 'bubblewrap' }))
describePageParsers('bubblewrap', () => openParserJail({ isolation: 'bubblewrap' }))

test('bubblewrap is what parsers run in by themselves', async () => {
  const jail = await openParserJail()
  expect(jail.notices).toEqual([])
  await jail.close()
})

test('a native parser has threads, and reaches nothing more than another', async () => {
  const jail = await openParserJail({ isolation: 'bubblewrap' })
  const hostile = new URL('../../packages/tools/src/sandbox/testing/hostile-parser.ts', import.meta.url)
  const parse = (what: string) =>
    jail.parseNative(hostile, new Uint8Array(), { what, path: '/etc/passwd', port: 80 }, new AbortController().signal)
  expect(await parse('thread')).toBeGreaterThan(0)
  const attempts = ['read', 'write', 'program', 'connect', 'fetch'].map(parse)
  expect((await Promise.allSettled(attempts)).map(({ status }) => status)).toEqual(attempts.map(() => 'rejected'))
  await jail.close()
})

test('the kernel filters what a parser asks of it, and it can write no more than 64 MB', async () => {
  const jail = await openParserJail({ isolation: 'bubblewrap' })
  const hostile = new URL('../../packages/tools/src/sandbox/testing/hostile-parser.ts', import.meta.url)
  const parse = jail.parse(hostile, new Uint8Array(), { what: 'spin' }, new AbortController().signal)
  parse.catch(() => {})
  await vi.waitUntil(() => statusesOf('/opt/node').length > 0, { timeout: 60_000 })
  const [status = ''] = statusesOf('/opt/node')
  expect(status).toMatch(/^Seccomp:\t2$/m)
  const mounts = readFileSync(`/proc/${/^Pid:\s*(\d+)/m.exec(status)?.[1]}/mountinfo`, 'utf8')
    .trim()
    .split('\n')
  const writable = mounts.filter((line) => / - tmpfs /.test(line) && / rw,/.test(line.split(' - ')[0]!))
  expect(writable).toEqual([expect.stringMatching(/ \/dev\/shm .*size=65536k/)])
  await jail.close()
})

test('a parse that is ended while its jail starts leaves nothing', async () => {
  const jail = await openParserJail({ isolation: 'bubblewrap' })
  const hostile = new URL('../../packages/tools/src/sandbox/testing/hostile-parser.ts', import.meta.url)
  for (let delay = 0; delay < 15; delay += 0.1) {
    const controller = new AbortController()
    const parse = jail.parse(hostile, new Uint8Array(), { what: 'spin' }, controller.signal)
    setTimeout(() => controller.abort(new Error('ended')), delay)
    await expect(parse).rejects.toThrow('ended')
  }
  await jail.close()
})
