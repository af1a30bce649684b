import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeExecutor } from '@aworld-train/testing'
import { afterAll, beforeAll } from 'vitest'
import { executorSubject } from '../support/executor-exam/executor-subject.ts'
import { findProcesses } from './find-processes.ts'
import { sparkEnvironment } from './spark-environment.ts'

let folder: string
let python: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spark-'))
  python = await sparkEnvironment()
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describeExecutor(
  'spark',
  executorSubject(
    () => folder,
    () => ({ engineName: 'spark', address: 'local[4]', resources: { 'spark.ui.enabled': 'false' }, options: { python } }),
    {
      not: { drain: 'Spark cancels the task of a worker that is to leave; what it has begins anew elsewhere' },
      async killLauncher() {
        const children = await readFile(`/proc/self/task/${process.pid}/children`, 'utf8')
        const drivers = await findProcesses((command) => command.includes('executors/python/spark/launch.py'))
        for (const pid of drivers) if (children.split(' ').includes(String(pid))) process.kill(pid, 'SIGKILL')
      },
    },
  ),
)
