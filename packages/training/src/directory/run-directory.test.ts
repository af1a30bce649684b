import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LeasedSandbox, SandboxTier } from '@aworld-train/core'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { inRunDirectory, type RunDirectory } from './run-directory.ts'

let runPath = ''
beforeEach(() => {
  runPath = mkdtempSync(join(tmpdir(), 'run-directory-'))
})
afterEach(() => rmSync(runPath, { recursive: true }))

/** Runs over environment servers of these tiers and stops unfinished. */
function run(tiers: readonly SandboxTier[]): Promise<Pick<RunDirectory, 'path' | 'resumed'>> {
  const sandboxes = tiers.map((tier): LeasedSandbox => ({ url: `http://${tier}/mcp`, tier, notices: [`${tier} was chosen.`] }))
  const request = { runPath, name: 'run', configurationHash: 'hash', provenance: { seed: 1 }, sandboxes, options: {} }
  return inRunDirectory({ ...request, signal: new AbortController().signal }, async ({ path, resumed, started }) => {
    started()
    return { path, resumed }
  })
}

it('keeps in its manifest where commands ran and why, and goes on there alone', async () => {
  const { path } = await run(['bubblewrap'])
  const manifest = JSON.parse(readFileSync(join(path, 'manifest.json'), 'utf8'))
  expect(manifest.provenance).toMatchObject({ seed: 1, sandboxes: [{ tier: 'bubblewrap', notices: ['bubblewrap was chosen.'] }] })
  await expect(run(['simulated'])).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('began with commands in the tier bubblewrap, and they would go on in the tier simulated'),
  })
  await expect(run([])).rejects.toThrow(/would go on in no environment server/)
  expect(await run(['bubblewrap'])).toEqual({ path, resumed: true })
})
