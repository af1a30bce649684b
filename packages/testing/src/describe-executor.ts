import { setTimeout as sleep } from 'node:timers/promises'
import type { Episode, LaunchedWorker, Launcher } from '@aworld-train/core'
import { describe, expect, onTestFinished, test } from 'vitest'

/** Checks of the exam. An engine may lack some, with a reason. */
export const executorChecks = {
  results: 'episodes are those of one process',
  worker: 'a worker that is killed is started again, and what it had begins anew',
  launcher: 'a launcher that is killed costs no rollout',
  coordinator: 'a coordinator that is killed leaves no worker behind',
  scale: 'more workers come when they are asked for',
  drain: 'workers that are to leave finish what they have',
  cancel: 'a rollout that is cancelled gives its place to the next',
} as const
export type ExecutorCheck = keyof typeof executorChecks

/** A coordinator with the workers of an engine. An agent of the exam reports its process, and asks its policy once. */
export interface ExecutorCoordinator {
  /** `null` if agents run in the process of the coordinator. */
  readonly launcher: Launcher | null
  /** Runs a rollout. With `waits` its agent continues only after `release`. */
  run(key: string, options?: { readonly waits?: boolean | undefined; readonly signal?: AbortSignal | undefined }): Promise<Episode>
  /** Processes in which a rollout has begun, one an attempt. */
  begun(key: string): Promise<readonly number[]>
  /** Lets a waiting rollout continue. */
  release(key: string): Promise<void>
  /** Problems of workers, as the user reads them. */
  readonly warnings: readonly string[]
  close(): Promise<void>
}

/** A coordinator in a process of its own. */
export interface SeparateCoordinator {
  /** Starts a rollout whose agent waits, and resolves to the number of its process. */
  begin(key: string): Promise<number>
  kill(): Promise<void>
}

export interface ExecutorSubject {
  open(options: { readonly workerNum: number; readonly slots: number }): Promise<ExecutorCoordinator>
  /** The same, with agents in the process of the coordinator. */
  openInProcess(): Promise<ExecutorCoordinator>
  openSeparate(options: { readonly workerNum: number; readonly slots: number }): Promise<SeparateCoordinator>
  /** Kills the process that keeps workers running, which is not this one. */
  killLauncher?(coordinator: ExecutorCoordinator): Promise<void>
  /** Checks that the engine cannot pass, with the reason. */
  readonly not?: Readonly<Partial<Record<ExecutorCheck, string>>> | undefined
  /** Milliseconds that one check may take. Default 180,000. */
  readonly timeoutMs?: number | undefined
}

/** The parts of an episode that do not depend on the place and time of its run. */
const comparable = ({ rollout, answer, reward, stopReason, trajectories }: Episode) => ({
  rollout,
  answer,
  reward,
  stopReason,
  turns: trajectories.map(({ agent, turns }) => [
    agent,
    turns.map(({ promptTokenIds, completionTokenIds }) => [promptTokenIds, completionTokenIds]),
  ]),
})

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** The exam for every engine that starts workers on this machine. */
export function describeExecutor(name: string, subject: ExecutorSubject): void {
  const { not = {}, timeoutMs = 180_000 } = subject
  const poll = { timeout: timeoutMs, interval: 100 }

  const exam = (check: ExecutorCheck, run: () => Promise<void>) =>
    test(executorChecks[check], { timeout: timeoutMs }, async (context) => {
      if (not[check] !== undefined) return context.skip(not[check])
      await run()
    })

  async function open(workerNum: number, slots: number) {
    const coordinator = await subject.open({ workerNum, slots })
    onTestFinished(() => coordinator.close())
    const launcher = coordinator.launcher as Launcher
    const running = async (count: number) =>
      expect
        .poll(async () => (await launcher.status()).map(({ state }: LaunchedWorker) => state), poll)
        .toEqual(Array.from({ length: count }, () => 'running'))
    const begun = async (key: string, attempts = 1): Promise<number> => {
      await expect.poll(async () => (await coordinator.begun(key)).length, poll).toBeGreaterThanOrEqual(attempts)
      return (await coordinator.begun(key)).at(-1)!
    }
    return { coordinator, launcher, running, begun }
  }

  describe(`executor: ${name}`, () => {
    exam('results', async () => {
      const keys = Array.from({ length: 24 }, (_, index) => `rollout-${index}`)
      const inProcess = await subject.openInProcess()
      onTestFinished(() => inProcess.close())
      const expected = await Promise.all(keys.map((key) => inProcess.run(key)))
      const { coordinator, running } = await open(2, 4)
      await running(2)
      const episodes = await Promise.all(keys.map((key) => coordinator.run(key)))
      expect(episodes.map(comparable)).toEqual(expected.map(comparable))
      const pids = new Set((await Promise.all(keys.map((key) => coordinator.begun(key)))).flat())
      expect(pids.size).toBe(2)
      expect(pids).not.toContain(process.pid)
      expect(coordinator.warnings).toEqual([])
    })

    exam('worker', async () => {
      const { coordinator, launcher, begun } = await open(2, 2)
      const rollout = coordinator.run('a', { waits: true })
      const pid = await begun('a')
      process.kill(pid, 'SIGKILL')
      expect(await begun('a', 2)).not.toBe(pid)
      await coordinator.release('a')
      expect(await rollout).toMatchObject({ attempt: 1, stopReason: 'completed' })
      await expect.poll(async () => Math.max(...(await launcher.status()).map(({ restarts }) => restarts)), poll).toBe(1)
      expect(coordinator.warnings.join('\n')).toMatch(/Worker "\S+" .*started again/)
    })

    exam('launcher', async () => {
      const { coordinator, running, begun } = await open(1, 2)
      const rollout = coordinator.run('a', { waits: true })
      const pid = await begun('a')
      await subject.killLauncher!(coordinator)
      await coordinator.release('a')
      expect(await rollout).toMatchObject({ stopReason: 'completed' })
      await expect.poll(() => coordinator.warnings.length, poll).toBeGreaterThan(0)
      await running(1)
      expect(await coordinator.run('b')).toMatchObject({ stopReason: 'completed' })
      await expect.poll(() => isAlive(pid) && coordinator.begun('b').then(([other]) => other !== pid), poll).toBe(false)
    })

    exam('coordinator', async () => {
      const coordinator = await subject.openSeparate({ workerNum: 2, slots: 1 })
      const pids = await Promise.all([coordinator.begin('a'), coordinator.begin('b')])
      expect(pids.map(isAlive)).toEqual([true, true])
      await coordinator.kill()
      await expect.poll(() => pids.map(isAlive), poll).toEqual([false, false])
    })

    exam('scale', async () => {
      const { coordinator, launcher, running, begun } = await open(1, 1)
      const first = coordinator.run('a', { waits: true })
      await begun('a')
      const second = coordinator.run('b', { waits: true })
      await launcher.scale(2)
      await running(2)
      expect(await begun('b')).not.toBe(await begun('a'))
      await Promise.all([coordinator.release('a'), coordinator.release('b')])
      expect([(await first).attempt, (await second).attempt]).toEqual([0, 0])
    })

    exam('drain', async () => {
      const { coordinator, launcher, running, begun } = await open(2, 1)
      await running(2)
      const rollouts = ['a', 'b'].map((key) => coordinator.run(key, { waits: true }))
      const pids = [await begun('a'), await begun('b')]
      const scaled = launcher.scale(1)
      // A coordinator that does not wait for a worker's attempt would have ended it by now.
      await sleep(6_000)
      expect(pids.map(isAlive)).toEqual([true, true])
      await Promise.all([coordinator.release('a'), coordinator.release('b')])
      for (const episode of await Promise.all(rollouts)) expect(episode).toMatchObject({ attempt: 0, stopReason: 'completed' })
      await scaled
      await expect.poll(() => pids.filter(isAlive).length, poll).toBe(1)
      expect(await launcher.status()).toEqual([expect.objectContaining({ state: 'running', restarts: 0 })])
      expect(await coordinator.run('c')).toMatchObject({ attempt: 0, stopReason: 'completed' })
    })

    exam('cancel', async () => {
      const { coordinator, begun } = await open(1, 1)
      const controller = new AbortController()
      const run = coordinator.run('a', { waits: true, signal: controller.signal })
      const cancelled = expect(run).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
      const pid = await begun('a')
      controller.abort()
      await cancelled
      expect(await coordinator.run('b')).toMatchObject({ attempt: 0, stopReason: 'completed' })
      expect(await begun('b')).toBe(pid)
    })
  })
}
