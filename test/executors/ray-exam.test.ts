import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeExecutor } from '@aworld-train/testing'
import { afterAll, beforeAll } from 'vitest'
import { executorSubject } from '../support/executor-exam/executor-subject.ts'
import { findProcesses } from './find-processes.ts'
import { type RayCluster, startRayCluster } from './ray-cluster.ts'

let folder: string
let cluster: RayCluster
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ray-'))
  cluster = await startRayCluster(folder, 2)
})
afterAll(async () => {
  await cluster?.close()
  await rm(folder, { recursive: true, force: true })
})

describeExecutor(
  'ray',
  executorSubject(
    () => folder,
    () => ({ engineName: 'ray', address: cluster.address, resources: { num_cpus: 1 }, options: { python: cluster.python } }),
    {
      async killLauncher() {
        const drivers = await findProcesses(
          (command, variables) => command.includes('AWORLD_TRAIN_PROGRAM') && variables.includes(process.env['RAY_AUTH_TOKEN_PATH']!),
        )
        for (const pid of drivers) process.kill(pid, 'SIGKILL')
      },
    },
  ),
)
