import { describeTokenEngine } from '@aworld-train/testing'
import { afterAll, beforeAll, describe } from 'vitest'
import { createSglangTokenEngine } from '../sglang/sglang-engines.ts'
import { createToySglang } from '../testing/sglang-server.ts'
import { toyModel } from '../testing/toy-policy.ts'
import { createToyVllm, type ToyServer } from '../testing/vllm-server.ts'
import { createVllmTokenEngine } from '../vllm/vllm-engines.ts'
import { createWeightUpdater } from '../weights/weight-updater.ts'
import type { RemoteTokenEngine } from './token-engine.ts'

const rows: readonly {
  readonly name: string
  readonly serve: () => Promise<ToyServer>
  readonly open: (replicas: readonly string[]) => Promise<RemoteTokenEngine>
}[] = [
  { name: 'vLLM, generate', serve: createToyVllm, open: (replicas) => createVllmTokenEngine({ replicas, model: toyModel }) },
  {
    name: 'vLLM, completions',
    serve: createToyVllm,
    open: (replicas) => createVllmTokenEngine({ replicas, model: toyModel, route: 'completions' }),
  },
  { name: 'SGLang', serve: createToySglang, open: (replicas) => createSglangTokenEngine({ replicas, model: toyModel }) },
  {
    name: 'SGLang, incremental',
    serve: () => createToySglang({ incremental: true }),
    open: (replicas) => createSglangTokenEngine({ replicas, model: toyModel }),
  },
]

describe.each(rows)('$name', ({ name, serve, open }) => {
  const servers: ToyServer[] = []
  beforeAll(async () => {
    servers.push(await serve(), await serve())
  })
  afterAll(() => Promise.all(servers.map((server) => server.close())))

  describeTokenEngine({
    name: `two servers of ${name}`,
    create: () => open(servers.map(({ url }) => url)),
    promptTokenIds: Int32Array.of(1, 2, 3, 4),
    draws: true,
    async publish(engine) {
      const version = engine.weightVersion() + 1
      await createWeightUpdater({ fleet: (engine as RemoteTokenEngine).fleet }).publish({ version, directory: `/weights-${version}` })
    },
  })
})
