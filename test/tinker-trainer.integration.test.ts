// The exam of trainers, sat by our own loop over a Tinker service: the double of it, whose adapters are embedded policies.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeTrainer } from '@aworld-train/testing'
import { afterAll } from 'vitest'
import { openTinkerService } from './support/tinker-service.ts'
import { tinkerSubject } from './support/trainer-exam/tinker-subject.ts'
import { examModel } from './support/trainer-exam/train-exam.ts'

const folder = await mkdtemp(join(tmpdir(), 'aworld-train-exam-'))
const service = await openTinkerService(examModel, { maxModels: 20 })
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

describeTrainer('tinker', tinkerSubject({ url: service.url, folder }))
