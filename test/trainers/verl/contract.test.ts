// The exam of trainers, sat by the real verl on the processor.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeTrainer } from '@aworld-train/testing'
import { afterAll } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'
import { verlSubject } from '../../support/trainer-exam/verl-subject.ts'

const folder = await mkdtemp(join(tmpdir(), 'aworld train verl exam-'))
afterAll(() => rm(folder, { recursive: true, force: true }))

describeTrainer('verl', verlSubject({ python: await verlEnvironment(), folder }))
