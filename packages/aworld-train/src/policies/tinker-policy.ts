import { basename } from 'node:path'
import { displayPath, TrainError } from '@aworld-train/core'
import { createTinkerEngine, describeService, requireTinkerTraining, type TinkerService } from '@aworld-train/engines/tinker'
import { describeIssues } from '@aworld-train/training'
import { z } from 'zod'
import type { Policy, PolicyKind } from './policy.ts'

/** The section `tinker` of a configuration. Its `training`, `sampling`, `evaluation` and `limits` win over those of the configuration. */
export const TinkerSettings = z.strictObject({
  url: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Address of the service. `null` takes `TINKER_BASE_URL`. The key of the service is in `TINKER_API_KEY` alone.'),
  baseModel: z.string().min(1).nullable().default(null).describe("The service's name of the model. `null` takes its only model."),
  lora: z
    .strictObject({
      rank: z.int().min(1).default(32).describe('Rank of the adapter. A higher rank has more weights to train.'),
      trainAttention: z.boolean().optional().describe('Whether the attention has an adapter. Left out, the service decides.'),
      trainMlp: z.boolean().optional().describe('Whether the MLP has an adapter. Left out, the service decides.'),
      trainUnembedding: z.boolean().optional().describe('Whether the unembedding has an adapter. Left out, the service decides.'),
    })
    .prefault({}),
  reduction: z
    .enum(['row-mean', 'sum'])
    .nullable()
    .default(null)
    .describe(
      "How the service adds up the losses of tokens. `null` takes `sum` at Thinking Machines' own service and `row-mean` elsewhere.",
    ),
  patienceMs: z
    .int()
    .min(1)
    .default(60_000)
    .describe(
      'Time that a call is tried again for, in milliseconds, where the service cannot be reached or is overloaded. The run then ends with `POLICY_UNAVAILABLE`.',
    ),
  resultMs: z
    .int()
    .min(1)
    .default(900_000)
    .describe('Time that the result of a request may take, in milliseconds, the queue of the service included.'),
})
export type TinkerSettings = z.infer<typeof TinkerSettings>

/** A LoRA adapter that a Tinker service samples and trains. */
export const tinkerPolicy: PolicyKind = {
  extension: {
    section: 'tinker',
    // Features that the protocol lacks are off, and the rate is the SDK's.
    defaults: { training: { learningRate: 1e-4, betas: [0.9, 0.95], weightDecay: 0, maxGradNorm: 0 } },
    overrides: ['training', 'sampling', 'evaluation', 'limits'],
    inert: {
      'engine.threads': 'the service samples and trains',
      'engine.simd': 'the service samples and trains',
    },
  },
  // A folder has the tokenizer alone, and each policy is an adapter of its own.
  sharesFolders: true,
  choose(config, extension, model, place) {
    const parsed = TinkerSettings.safeParse(extension)
    if (!parsed.success) {
      const problems = describeIssues(parsed.error, { schema: TinkerSettings, value: extension })
      throw new TrainError('CONFIG_INVALID', problems.map((problem) => `tinker: ${problem}`).join('\n'), { details: { problems } })
    }
    requireTinkerTraining(config)
    if (model === null) {
      const key = place ? `policies.${place.name}` : 'model'
      const message = `A Tinker service trains a model of its own, so none is made here; name a folder with its tokenizer in ${key}.path.`
      throw new TrainError('CONFIG_INVALID', message)
    }
    const { lora, baseModel, reduction } = parsed.data
    return {
      settings: { lora, baseModel, reduction },
      describe: (signal) => describeTinker(parsed.data, signal),
      open: (folder, signal) =>
        open({ model: folder, name: place?.name ?? basename(folder), settings: parsed.data, seed: config.seed, signal }),
    }
  },
}

/** The service of the settings or the environment. Throws CONFIG_INVALID if neither names one. */
function toTinkerService({ url, patienceMs, resultMs }: Pick<TinkerSettings, 'url' | 'patienceMs' | 'resultMs'>): TinkerService {
  const address = url ?? process.env['TINKER_BASE_URL']
  if (!address) {
    const message = 'There is no Tinker service; name its address in tinker.url or in TINKER_BASE_URL, such as http://127.0.0.1:8000.'
    throw new TrainError('CONFIG_INVALID', message)
  }
  return { url: address, apiKey: process.env['TINKER_API_KEY'], patienceMs, resultMs }
}

/** Describes a service in one line: server, models and the version of the wire. Default: the service of `TINKER_BASE_URL`. */
export async function describeTinker(
  settings: Pick<TinkerSettings, 'url' | 'patienceMs' | 'resultMs'> = TinkerSettings.parse({}),
  signal?: AbortSignal,
): Promise<string> {
  const { url, server, wireVersion, models } = await describeService(toTinkerService(settings), signal)
  const names = models.map(({ name }) => name).join(', ') || 'no model'
  return `${server ?? 'a server without a name'} at ${url}, which trains ${names}; the wire is that of the tinker SDK ${wireVersion}`
}

interface Opening {
  readonly model: string
  readonly name: string
  readonly settings: TinkerSettings
  readonly seed: number
  readonly signal: AbortSignal
}

async function open({ model, name, settings, seed, signal }: Opening): Promise<Policy> {
  const { baseModel, lora, reduction } = settings
  const tinker = await createTinkerEngine({
    ...toTinkerService(settings),
    model,
    name,
    ...(baseModel !== null && { baseModel }),
    ...(reduction !== null && { reduction }),
    lora: { ...lora, seed },
    signal,
  })
  const { engine, learner, service, close } = tinker
  return {
    engine,
    learner,
    reference: undefined,
    tier: service,
    details: {
      policy: `${service.baseModel}, LoRA of rank ${service.rank}; tokenizer of ${displayPath(model)}, context ${engine.model.contextLength}`,
      engine: `Tinker at ${service.url}`,
    },
    async saveModel() {
      const message = 'The weights are at the Tinker service, so no model is saved here; checkpoints of the run point to them.'
      throw new TrainError('CONFIG_INVALID', message)
    },
    close,
  }
}
