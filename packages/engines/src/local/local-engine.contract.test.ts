import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describeLearner, describeTokenEngine } from '@aworld-train/testing'
import { afterAll } from 'vitest'
import { createLocalEngine, type LocalEngine } from './local-engine.ts'
import { makeTinyFolder } from './testing/tiny-model.ts'

const folder = await makeTinyFolder()
afterAll(() => rm(dirname(folder.directory), { recursive: true }))
const engines = new WeakMap<object, LocalEngine>()

describeTokenEngine({
  name: 'local',
  create: async () => {
    const local = await createLocalEngine({ model: folder.directory, threads: 2 })
    engines.set(local.engine, local)
    return local.engine
  },
  promptTokenIds: Int32Array.of(256, 5, 6, 7, 8),
  publish: async (engine) => {
    await engines.get(engine)!.learner.publish()
  },
  draws: true,
})

describeLearner({
  name: 'local',
  create: () => createLocalEngine({ model: folder.directory, threads: 2, simd: 'plain' }),
  learningRate: 1e-2,
})
