import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readRun } from '@aworld-train/store'
import { expect, test } from 'vitest'
import { checkHistory } from '../packages/store/src/testing/check-history.ts'
import { childProcess } from '../packages/store/src/testing/child-process.ts'

const worker = fileURLToPath(new URL('./rollout-worker.ts', import.meta.url))
const seed = Number(process.env['ROLLOUT_CRASH_SEED'] ?? Date.now() % 1_000_000)
const kills = 10
const rollouts = 400

test(`the same command resumes after ${kills} kills: every rollout is trained once (ROLLOUT_CRASH_SEED=${seed})`, {
  timeout: 120_000,
}, async () => {
  const runPath = await mkdtemp(join(tmpdir(), 'rollout-crash-'))
  try {
    const acknowledged: string[] = []
    let path = ''
    for (let kill = 0; kill < kills; kill++) {
      await using child = childProcess([worker, runPath, String(rollouts)])
      path = (await child.line((line) => line.startsWith('path '))).slice('path '.length)
      // Every other kill comes where there are turns to lose, the others also before.
      if (kill % 2 === 1) await child.line((line) => line.startsWith('turn '))
      await sleep(((seed * 9301 + kill * 49_297) % 59) + 1)
      child.process.kill('SIGKILL')
      expect(await child.exited).toMatchObject({ signal: 'SIGKILL', stderr: '' })
      acknowledged.push(...child.lines)
      expect(checkHistory(path, acknowledged)).toEqual([])
    }
    await using last = childProcess([worker, runPath, String(rollouts)])
    expect(await last.exited).toEqual({ code: 0, signal: null, stderr: '' })
    expect(last.lines[0]).toBe(`path ${path}`)
    expect(checkHistory(path, [...acknowledged, ...last.lines])).toEqual([])
    const run = readRun(path)
    const trained = run.steps().flatMap((step) => step.rollouts)
    expect([trained.length, new Set(trained).size]).toEqual([rollouts, rollouts])
    expect(run.counts()).toMatchObject({ rollouts, finished: rollouts, trained: rollouts })
    expect(run.supersededTokens()).toBeGreaterThan(0)
    run.close()
    await using next = childProcess([worker, runPath, '8'])
    await next.exited
    expect(next.lines[0]).not.toBe(`path ${path}`)
  } finally {
    await rm(runPath, { recursive: true, force: true })
  }
})
