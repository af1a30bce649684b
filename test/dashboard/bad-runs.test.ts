// @module-tag quick
import { spawn } from 'node:child_process'
import { appendFile, chmod, mkdtemp, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { openDashboard } from '@aworld-train/dashboard'
import { openRunStore } from '@aworld-train/store'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { writeRun } from '../../packages/dashboard/src/testing/write-run.ts'
import { storeWorker } from '../../packages/store/src/testing/child-process.ts'
import { repository } from '../support/run-cli.ts'
import { looks, openBrowser, visit, watch } from './browser.ts'

let below: string
let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
  below = await mkdtemp(join(tmpdir(), 'aworld-train-bad-runs-'))
})
afterAll(async () => {
  await browser?.close()
  await rm(below, { recursive: true, force: true })
})

/** A whole run below the folder of this file; `change` then damages it. */
async function wholeRun(name: string, change: (path: string) => Promise<unknown> = async () => {}): Promise<string> {
  await using run = await writeRun({ name })
  const path = join(below, name)
  await rename(run.path, path)
  await change(path)
  return path
}

const bad: readonly (readonly [what: string, make: () => Promise<string>, pages: Readonly<Record<string, RegExp>>])[] = [
  [
    'without episodes',
    async () => {
      const path = join(below, 'empty')
      await (await openRunStore({ path, manifest: { name: 'empty' } })).close()
      return path
    },
    {
      '': /interrupted.*not evaluated/s,
      '/step/1': /No such step|no step/i,
      '/rollout/train/1/0/0': /No such rollout/,
      '/tokens/train/1/0/0': /No such rollout/,
      '/compare/train/1/0/0?with=train/1/0/1': /No such rollout/,
      '/health': /without a result\s+0/,
    },
  ],
  [
    'of another version',
    () =>
      wholeRun('version', (path) =>
        writeFile(join(path, 'manifest.json'), '{"version":1,"name":"old","createdAt":1,"configurationHash":""}'),
      ),
    { '': /cannot be read.*has format 1, this version reads 3/s, '/step/1': /has format 1/, '/health': /has format 1/ },
  ],
  [
    'of a killed process',
    async () => {
      const path = join(below, 'killed')
      await using worker = storeWorker(['stop', path])
      await worker.line((line) => line === 'stopped')
      worker.process.kill('SIGKILL')
      await worker.exited
      return path
    },
    {
      '': /interrupted.*2 rollouts without a result/s,
      '/rollout/runs': /interrupted.*6 sampled/s,
      '/health': /waiting\s+0\s+running\s+0.*without a result\s+2/s,
    },
  ],
  [
    'that failed',
    () =>
      wholeRun('failed', async (path) => {
        const error = { code: 'TRAINER_FAILED', boundary: 'trainer', retryable: false, message: 'CUDA is out of memory.\u202e' }
        await appendFile(join(path, 'events.jsonl'), `${JSON.stringify({ type: 'run-end', at: 1, status: 'failed', error })}\n`)
      }),
    { '': /failed.*The run failed: TRAINER_FAILED.*CUDA is out of memory\.\\u202e .*\. What was trained before is kept/s },
  ],
  [
    'with a torn line',
    () =>
      wholeRun('torn', async (path) => {
        const file = join(path, 'events.jsonl')
        const [first, ...rest] = (await readFile(file, 'utf8')).split('\n')
        await writeFile(file, [first, '{"type":"step-', ...rest].join('\n'))
        await appendFile(file, '{"type":"run-st')
      }),
    { '': /finished.*0\.333.*0\.667/s, '/step/1': /Step 1/ },
  ],
  [
    'with a million events',
    () =>
      wholeRun('million', async (path) => {
        const file = join(path, 'events.jsonl')
        const [first, ...rest] = (await readFile(file, 'utf8')).split('\n')
        const event = JSON.stringify({ type: 'phase-progress', at: 1, phase: 'rollouts', done: 1, total: 2, metrics: {} })
        await writeFile(file, [first, ...Array<string>(1_000_000).fill(event), ...rest].join('\n'))
      }),
    { '': /finished.*0\.333.*0\.667/s, '/step/1': /Step 1/, '/health': /finished\s+14/ },
  ],
  [
    'with a corrupt segment',
    () =>
      wholeRun('corrupt', async (path) => {
        for (const name of await readdir(join(path, 'segments'))) {
          await using file = await open(join(path, 'segments', name), 'r+')
          await file.write(Buffer.alloc((await file.stat()).size, 7))
        }
      }),
    {
      '': /finished.*0\.333.*0\.667/s,
      '/step/1': /Step 1.*0\.750/s,
      '/rollout/train/1/0/0': /could not be read.*tokens of turn 0 of .* are not the recorded ones/s,
      '/tokens/train/1/0/0': /could not be read/,
    },
  ],
]

it.each(bad)('a run %s is shown as far as it can be read, and says what is wrong', async (_, make, pages) => {
  const path = await make()
  const dashboard = await openDashboard({ runs: [path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  for (const [hash, text] of Object.entries(pages)) {
    await visit(watched, `#/${basename(path)}${hash}`)
    await expect.poll(() => watched.page.innerText('body'), { message: hash }).toMatch(text)
  }
  // Browsers report an answer that is an error by themselves.
  expect(watched.problems.filter((problem) => !problem.includes('status of 500'))).toEqual([])
  await watched.context.close()
  await dashboard.close()
})

it('a run that is deleted while it is open is named, and the others stay', async () => {
  const path = await wholeRun('deleted')
  await wholeRun('stays')
  const dashboard = await openDashboard({ below })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  await visit(watched, '#/deleted')
  await page.getByText('Held-out reward').first().waitFor()
  await rm(path, { recursive: true })
  await visit(watched, '#/deleted/rollout/train/1/0/0')
  await expect.poll(() => page.innerText('main')).toMatch(/could not be read|reward/)
  await visit(watched, '#/')
  const rowOf = (name: string) => page.locator('main tr', { hasText: name })
  await expect.poll(() => rowOf('deleted').innerText()).toContain('is not a run')
  await expect.poll(() => rowOf('stays').innerText()).toContain('finished')
  await visit(watched, '#/stays')
  await page.getByText('0.667').first().waitFor()
  expect(watched.problems.filter((problem) => !problem.includes('status of 500'))).toEqual([])
  await watched.context.close()
  await dashboard.close()
})

it('a run on a disk that cannot be written is shown whole', async () => {
  const path = await wholeRun('read-only')
  const nobody = process.getuid!() === 0 ? 65_534 : undefined
  await chmod(below, 0o755)
  for (const entry of await readdir(path, { recursive: true, withFileTypes: true }))
    await chmod(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o555 : 0o444)
  await chmod(path, 0o555)
  const before = await readdir(path)
  const child = spawn(process.execPath, [join(repository, 'packages/cli/src/main.ts'), 'view', path], {
    cwd: below,
    env: { ...process.env, HOME: below, NODE_OPTIONS: '--no-warnings' },
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(nobody !== undefined && { uid: nobody, gid: nobody }),
  })
  try {
    let url = ''
    for await (const line of createInterface({ input: child.stdout })) {
      url = /^http:\S+/.exec(line)?.[0] ?? ''
      if (url !== '') break
    }
    const watched = await watch(browser, url, looks.light)
    await visit(watched, '#/read-only')
    await watched.page.getByText('0.667').first().waitFor()
    await visit(watched, '#/read-only/tokens/train/1/0/0')
    await watched.page.waitForSelector('.stream canvas')
    expect(watched.problems).toEqual([])
    await watched.context.close()
    expect(await readdir(path)).toEqual(before)
  } finally {
    child.kill('SIGKILL')
    await chmod(path, 0o755)
    for (const entry of await readdir(path, { withFileTypes: true })) if (entry.isDirectory()) await chmod(join(path, entry.name), 0o755)
  }
})
