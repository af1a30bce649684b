import { chatMlTemplate, createVocabularyTokenizer, initModel, type WarmUpRequest } from 'aworld-train'
import { atomicNumbers, instructions, lookupDescription } from './elements.ts'

const names = Object.keys(atomicNumbers)

/** Texts of one token each: the calls, so that chance finds some, and what every prompt consists of, so that prompts are short. */
const pieces = [
  ...names.map((name) => `<tool_call>\n{"name": "lookup", "arguments": {"name": "${name}"}}\n</tool_call>`),
  'system\n',
  'user\n',
  'assistant\n',
  'tool\n',
  instructions,
  ...chatMlTemplate
    .split(/'/)
    .filter((text) => text.length > 40 && !text.includes('%'))
    .map((text) => text.replaceAll('\\n', '\n')),
  '{"type": "function", "function": {"name": "lookup", "description": ',
  `"${lookupDescription}", "parameters": {`,
  '"$schema": "https://json-schema.org/draft/2020-12/schema"',
  '"type": "object"',
  '"properties": {"name": {"type": "string"}}',
  '"required": ["name"]',
  '"additionalProperties": false',
  '"strict": true',
]

/** A policy of random weights: it knows nothing, not even where an answer ends. */
export async function makeModel({ directory, seed }: WarmUpRequest): Promise<void> {
  await initModel(directory, {
    config: {
      hiddenSize: 16,
      layers: 1,
      heads: 2,
      kvHeads: 1,
      headDim: 8,
      intermediateSize: 32,
      ropeTheta: 10_000,
      rmsNormEps: 1e-6,
      tieWordEmbeddings: true,
      qkNorm: true,
      contextLength: 2048,
    },
    tokenizer: createVocabularyTokenizer({ specialTokens: ['<|im_start|>', '<|im_end|>'], pieces }),
    chatTemplate: chatMlTemplate,
    seed,
  })
}
