import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { TokenEngine } from '@aworld-train/core'
import { createTinkerEngine } from '@aworld-train/engines/tinker'
import { describeLearner, describeTokenEngine } from '@aworld-train/testing'
import { afterAll, beforeAll, describe } from 'vitest'
import { makeTinyFolder } from '../packages/engines/src/local/testing/tiny-model.ts'
import { openTinkerService, type TinkerService } from './support/tinker-service.ts'

const folder = await makeTinyFolder()
afterAll(() => rm(dirname(folder.directory), { recursive: true }))

describe.each(['row-mean', 'sum'] as const)('a service whose losses are added up as %s', (reduction) => {
  let service: TinkerService
  beforeAll(async () => {
    service = await openTinkerService(folder.directory, { reduction, maxModels: 100 })
  })
  afterAll(() => service[Symbol.asyncDispose]())
  const open = () => createTinkerEngine({ url: service.url, model: folder.directory, name: 'tiny', reduction })
  const publishes = new WeakMap<TokenEngine, () => Promise<unknown>>()

  describeTokenEngine({
    name: `tinker, ${reduction}`,
    async create() {
      const { engine, learner } = await open()
      publishes.set(engine, () => learner.publish())
      return engine
    },
    promptTokenIds: Int32Array.of(256, 5, 6, 7, 8),
    publish: async (engine) => void (await publishes.get(engine)?.()),
    draws: true,
  })

  describeLearner({
    name: `tinker, ${reduction}`,
    create: open,
    learningRate: 1e-2,
    temperatures: [1],
    divergence: false,
  })
})
