// @module-tag quick
import { randomBytes } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { openStandIn } from '../../testing/stand-in.ts'
import { openWebBench, openWebContext } from '../../testing/web-context.ts'
import { downloadServer } from './server.ts'

const bytes = randomBytes(5_000)
const site = await openStandIn(({ url }) =>
  url.pathname === '/data.bin' ? { headers: { 'content-type': 'application/zip' }, body: bytes } : { status: 404, body: 'gone' },
)
const outside = { web: { mirrors: { 'https://files.test': site.url } } }
const bench = await openWebBench(downloadServer, outside)
afterAll(async () => {
  await bench.close()
  await site.close()
})
const save = (input: object = {}) =>
  bench.call('download_file', { url: 'https://files.test/data.bin', output_file_path: 'data.bin', ...input })

describeToolServer({
  server: downloadServer,
  examples: { download_file: { url: 'https://files.test/data.bin', output_file_path: 'data.bin' }, get_download_capabilities: {} },
  open: (overrides) => openWebContext(outside, overrides),
})

describe('download-server', () => {
  it('saves a file in the workspace, byte for byte, and replaces none unasked', async () => {
    expect(await save()).toBe('Saved 5000 bytes of application/zip as data.bin.')
    expect(await bench.context.workspace.get('data.bin', 10_000, bench.context.signal)).toEqual(bytes)
    expect(await save()).toBe('error: "data.bin" is there already; choose another path, or set overwrite.')
    expect(await save({ overwrite: true })).toContain('Saved 5000 bytes')
    expect(JSON.parse(await save({ overwrite: true, output_format: 'json' }))).toMatchObject({ path: 'data.bin', bytes: 5000 })
  })

  it('saves nothing of an answer that is no file, of a private address, and outside of the workspace', async () => {
    expect(await save({ url: 'https://files.test/gone', output_file_path: 'gone' })).toContain(
      'error: The download was answered with status 404',
    )
    expect(await save({ url: 'http://127.0.0.1/', output_file_path: 'private' })).toContain('error: 127.0.0.1 is not on the public web')
    expect(await save({ output_file_path: '../../etc/passwd' })).toContain('error: ')
  })
})
