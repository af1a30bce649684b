import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import type { Message, ModelDescription, ToolDefinition, TrainingSample } from '@aworld-train/core'
import { createLocalEngine, initModel, trainBpe } from '@aworld-train/engines/local'
import { trainSft } from '@aworld-train/training'

/** What the model says to "time" and to "sum": a tool call in Hermes' syntax, and plain text. */
export const answers = {
  time: '<tool_call>\n{"name": "clock", "arguments": {"zone": "UTC"}}\n</tool_call>',
  sum: 'It is 4, or 5.',
} as const

export const clock: ToolDefinition = {
  name: 'clock',
  description: 'Tells the time.',
  parameters: { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] },
}

export const contextLength = 1024

/** Makes a Qwen3 of two layers and byte pieces: it knows nothing yet, so its completions are long. */
export async function makeBlankModel(directory: string): Promise<void> {
  const tokenizer = trainBpe(Object.values(answers), {
    vocabularySize: 320,
    specialTokens: ['<|endoftext|>', '<|im_start|>', '<|im_end|>'],
  })
  const shape = { hiddenSize: 64, layers: 2, heads: 2, kvHeads: 1, headDim: 32, intermediateSize: 128 }
  const rest = { ropeTheta: 10_000, rmsNormEps: 1e-6, tieWordEmbeddings: true, qkNorm: true, contextLength }
  await initModel(directory, { config: { ...shape, ...rest }, tokenizer, chatTemplate: chatMlTemplate, seed: 11 })
}

/** Teaches a blank model two answers; the same bytes on every machine. */
export async function makeToolModel(directory: string): Promise<ModelDescription> {
  await makeBlankModel(directory)
  const local = await createLocalEngine({ model: directory, simd: 'plain', threads: 2 })
  try {
    const chat = await loadChatModel({ directory, stopTokenIds: local.engine.model.stopTokenIds })
    const demonstrations = (['time', 'sum'] as const).flatMap((word) =>
      [[], [clock]].map((tools): TrainingSample => {
        const messages: readonly Message[] = [{ role: 'user', content: word }]
        const { promptTokenIds: prompt } = chat.createConversation().prepare({ messages, tools })
        const tokenIds = Int32Array.of(...prompt, ...chat.encode(`${answers[word]}<|im_end|>`))
        return {
          version: 2,
          tokenIds,
          lossMask: Uint8Array.from(tokenIds, (_, position) => (position < prompt.length ? 0 : 1)),
          rolloutLogprobs: new Float32Array(tokenIds.length),
          weightVersions: [],
          reward: 0,
          advantage: null,
          group: word,
          agent: 'demonstration',
          trajectory: 'demonstration',
          policy: 'local',
          provenance: { rollout: word, attempt: 0, taskId: word, sample: 0, turns: [] },
        }
      }),
    )
    const steps = 120
    await trainSft({
      learner: local.learner,
      batches: Array.from({ length: steps }, () => demonstrations),
      steps,
      learningRate: 1e-2,
      warmupSteps: 5,
      signal: new AbortController().signal,
    })
    await local.saveModel(directory)
    return local.engine.model
  } finally {
    await local.close()
  }
}

/** Another folder with weights that differ from those of `directory`: one more small update on a text. */
export async function makeOtherWeights(directory: string, target: string, text: string): Promise<void> {
  const local = await createLocalEngine({ model: directory, simd: 'plain', threads: 2 })
  try {
    const chat = await loadChatModel({ directory, stopTokenIds: local.engine.model.stopTokenIds })
    const tokenIds = chat.encode(text)
    const sample: TrainingSample = {
      version: 2,
      tokenIds,
      lossMask: Uint8Array.from(tokenIds, (_, position) => (position === 0 ? 0 : 1)),
      rolloutLogprobs: new Float32Array(tokenIds.length),
      weightVersions: [],
      reward: 0,
      advantage: null,
      group: 'other',
      agent: 'other',
      trajectory: 'other',
      policy: 'local',
      provenance: { rollout: 'other', attempt: 0, taskId: 'other', sample: 0, turns: [] },
    }
    await trainSft({
      learner: local.learner,
      batches: [[sample], [sample], [sample]],
      steps: 3,
      learningRate: 3e-3,
      warmupSteps: 1,
      signal: new AbortController().signal,
    })
    await local.saveModel(target)
  } finally {
    await local.close()
  }
}
