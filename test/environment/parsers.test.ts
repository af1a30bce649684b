// @module-tag quick
import { openParserJail } from '@aworld-train/sandbox'
import { expect, test, vi } from 'vitest'
import { describeParserJail } from '../../packages/sandbox/src/testing/describe-parser-jail.ts'
import { describePageParsers } from '../../packages/tool-servers/src/testing/describe-page-parsers.ts'
import { describeParsers } from '../../packages/tool-servers/src/testing/describe-parsers.ts'
import { statusesOf } from './processes.ts'

describeParserJail('bubblewrap')
describeParsers('bubblewrap', () => openParserJail({ isolation: 'bubblewrap' }))
describePageParsers('bubblewrap', () => openParserJail({ isolation: 'bubblewrap' }))

test('bubblewrap is what parsers run in by themselves', async () => {
  const jail = await openParserJail()
  expect(jail.notices).toEqual([])
  await jail.close()
})

test('the kernel filters what a parser asks of it', async () => {
  const jail = await openParserJail({ isolation: 'bubblewrap' })
  const hostile = new URL('../../packages/sandbox/src/testing/hostile-parser.ts', import.meta.url)
  const parse = jail.parse(hostile, new Uint8Array(), { what: 'spin' }, new AbortController().signal)
  parse.catch(() => {})
  await vi.waitUntil(() => statusesOf('/opt/node').length > 0)
  expect(statusesOf('/opt/node')).toEqual([expect.stringMatching(/^Seccomp:\t2$/m)])
  await jail.close()
})

test('a parse that is ended while its jail starts leaves nothing', async () => {
  const jail = await openParserJail({ isolation: 'bubblewrap' })
  const hostile = new URL('../../packages/sandbox/src/testing/hostile-parser.ts', import.meta.url)
  for (let delay = 0; delay < 15; delay += 0.1) {
    const controller = new AbortController()
    const parse = jail.parse(hostile, new Uint8Array(), { what: 'spin' }, controller.signal)
    setTimeout(() => controller.abort(new Error('ended')), delay)
    await expect(parse).rejects.toThrow('ended')
  }
  await jail.close()
})
