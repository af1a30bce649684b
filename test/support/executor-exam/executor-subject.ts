import { spawn } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ExecutorSubject } from '@aworld-train/testing'
import { expect } from 'vitest'
import { begun, openCoordinator } from './open-coordinator.ts'

const script = fileURLToPath(new URL('separate-coordinator.ts', import.meta.url))

/** Prepares an engine for the exam: `executor` of its configuration, and a folder that the caller removes. */
export function executorSubject(
  folder: () => string,
  executor: () => object,
  rest: Pick<ExecutorSubject, 'not' | 'killLauncher' | 'timeoutMs'> = {},
): ExecutorSubject {
  const place = () => mkdtemp(join(folder(), 'exam-'))
  return {
    ...rest,
    open: async (options) => openCoordinator(await place(), { ...executor(), ...options }),
    openInProcess: async () => openCoordinator(await place(), {}),
    async openSeparate(options) {
      const folder = await place()
      const child = spawn(process.execPath, [script, JSON.stringify({ folder, executor: { ...executor(), ...options } })], {
        stdio: ['pipe', 'inherit', 'inherit'],
      })
      const ended = new Promise((resolve) => child.once('exit', resolve))
      return {
        async begin(key) {
          child.stdin.write(`${key}\n`)
          await expect.poll(() => begun(folder, key), { timeout: rest.timeoutMs ?? 180_000 }).toHaveLength(1)
          return (await begun(folder, key))[0]!
        },
        async kill() {
          child.kill('SIGKILL')
          await ended
        },
      }
    },
  }
}
