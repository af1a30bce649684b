import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { repository, runCli } from '../support/run-cli.ts'

// The task that is learned in the terminal, through the command line and in bubblewrap.
let folder = ''
let variables: Record<string, string> = {}
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'terminal-example-'))
  const { code, stdout, stderr } = await runCli(['env', 'start', '--port', '0', '--tier', 'bubblewrap'], { cwd: folder })
  expect([code, stderr]).toEqual([0, expect.stringContaining('env stop')])
  const { url, token } = JSON.parse(readFileSync(join(folder, '.aworld-train/environment/connection.json'), 'utf8'))
  expect(stdout).toContain(url)
  variables = { MCP_SERVER_URL: url, MCP_SERVER_TOKEN: token }
})
afterAll(async () => {
  await runCli(['env', 'stop'], { cwd: folder })
  rmSync(folder, { recursive: true, force: true })
})

async function heldOut(seed: number): Promise<{ readonly before: number; readonly after: number }> {
  const runPath = join(folder, `runs-${seed}`)
  const args = ['train', join(repository, 'examples/terminal'), '--seed', String(seed), '--run-path', runPath, '--json']
  const { code, stdout, stderr } = await runCli(args, { env: variables, deadlineMs: 900_000 })
  expect([code, stderr]).toEqual([0, expect.any(String)])
  const run = /"path":"([^"]*)"/.exec(stdout)?.[1] ?? ''
  const { before, after } = JSON.parse(readFileSync(join(run, 'report.json'), 'utf8')) as RunReport
  return { before: before!.reward, after: after!.reward }
}

it.each([1, 2, 3])('is learned with seed %i', { timeout: 1_000_000 }, async (seed) => {
  const { before, after } = await heldOut(seed)
  expect(after - before).toBeGreaterThan(0.2)
})
