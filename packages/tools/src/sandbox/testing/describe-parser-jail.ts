import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ParserJail, ToolError } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openParserJail } from '../parser/open-parser-jail.ts'
import type { HostileOptions } from './hostile-parser.ts'

const hostile = new URL('./hostile-parser.ts', import.meta.url)
const never = new AbortController().signal

/** The tests that parsers pass in every isolation. */
export function describeParserJail(isolation: 'bubblewrap' | 'node'): void {
  describe(`parsers in ${isolation}`, () => {
    let jail: ParserJail
    let tight: ParserJail
    beforeAll(async () => {
      jail = await openParserJail({ isolation })
      tight = await openParserJail({ isolation, limits: { memoryBytes: 200 * 2 ** 20, answerBytes: 1_000_000 } })
    })
    afterAll(async () => {
      await jail.close()
      await tight.close()
    })

    const parse = (options: HostileOptions, bytes = new Uint8Array(), of = jail) => of.parse(hostile, bytes, options, never)

    test('get the bytes, and answer in JSON, whatever they log', async () => {
      const bytes = Uint8Array.from({ length: 300 }, (_, index) => index % 256)
      expect(await parse({ what: 'echo' }, bytes)).toEqual({ text: Buffer.from(bytes).toString('latin1'), bytes: 300 })
      expect(await parse({ what: 'nothing' })).toBe(null)
    })

    test('fail with the message that they throw', async () => {
      await expect(parse({ what: 'throw' })).rejects.toEqual(new ToolError('The file is damaged; try another.'))
    })

    test.each([
      ['heap', /more than 200 MB/],
      ['buffers', /more than 200 MB/],
      ['long', /too large for one answer/],
    ])('that take too much are ended: %s', async (what, message) => {
      const error = await parse({ what }, new Uint8Array(), tight).catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(ToolError)
      expect((error as Error).message).toMatch(message)
    })

    test('that take too long are ended', async () => {
      const brief = await openParserJail({ isolation, limits: { timeoutMs: 300 } })
      await expect(parse({ what: 'spin' }, new Uint8Array(), brief)).rejects.toEqual(
        new ToolError('The file takes longer than 0.3 s to read; ask for a smaller part, or another file.'),
      )
      await brief.close()
    })

    test('that end without an answer are no fault of the file', async () => {
      const error = await parse({ what: 'exit' }).catch((thrown: unknown) => thrown)
      expect(error).not.toBeInstanceOf(ToolError)
      expect((error as Error).message).toMatch(/exit code 7/)
    })

    test('are ended at once when their caller goes away', async () => {
      const controller = new AbortController()
      const call = jail.parse(hostile, new Uint8Array(), { what: 'spin' }, controller.signal).catch((error: unknown) => error)
      await new Promise((resolve) => setTimeout(resolve, 200))
      const begin = performance.now()
      const reason = new Error('gone')
      controller.abort(reason)
      expect(await call).toBe(reason)
      expect(performance.now() - begin).toBeLessThan(10_000)
    })

    test('reach no file, variable, program, thread or port of the machine', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'outside-'))
      let connections = 0
      const server = createServer((socket) => {
        connections++
        socket.destroy()
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      process.env['AWORLD_TRAIN_TEST_SECRET'] = 'secret'
      try {
        const path = join(folder, 'secret.txt')
        await writeFile(path, 'secret')
        const { port } = server.address() as AddressInfo
        const attempts = ['read', 'write', 'program', 'thread', 'connect', 'fetch'].map((what) => parse({ what, path, port }))
        const outcomes = await Promise.allSettled([...attempts, parse({ what: 'read', path: '/etc/passwd' })])
        expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => 'rejected'))
        expect(JSON.stringify(await parse({ what: 'environment' }))).not.toContain('secret')
        expect(connections).toBe(0)
      } finally {
        delete process.env['AWORLD_TRAIN_TEST_SECRET']
        server.close()
        await rm(folder, { recursive: true })
      }
    })

    test('are ended when the jail closes', async () => {
      const closing = await openParserJail({ isolation })
      const call = expect(closing.parse(hostile, new Uint8Array(), { what: 'spin' }, never)).rejects.toThrow('The parsers are closed.')
      await closing.close()
      await call
      await expect(closing.parse(hostile, new Uint8Array(), { what: 'nothing' }, never)).rejects.toThrow('The parsers are closed.')
    })
  })
}
