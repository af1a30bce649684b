// @module-tag quick
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeExecutor } from '@aworld-train/testing'
import { afterAll, beforeAll } from 'vitest'
import { executorSubject } from '../support/executor-exam/executor-subject.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-executor-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describeExecutor(
  'local',
  executorSubject(
    () => folder,
    () => ({ engineName: 'local' }),
    { not: { launcher: 'the launcher is the coordinator itself' } },
  ),
)
