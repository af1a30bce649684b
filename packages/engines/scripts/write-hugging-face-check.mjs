#!/usr/bin/env node
// Writes models, tokenizers and what this engine makes of them into a folder, for check_hugging_face.py to load with transformers.
// usage: node scripts/write-hugging-face-check.mjs FOLDER
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { createLocalEngine, createVocabularyTokenizer, initModel, trainBpe } from '@aworld-train/engines/local'
import { Tokenizer } from '@huggingface/tokenizers'

const folder = process.argv[2]
if (!folder) {
  process.stderr.write('usage: write-hugging-face-check.mjs FOLDER\n')
  process.exit(2)
}
const specialTokens = ['<|im_start|>', '<|im_end|>']
const pieces = ['user\n', 'assistant\n', 'What is the ', 'atomic number', 'iron', 'tin', 'titanium', '10', '100', '東京', '\n{"name": "']
const words = [
  'iron',
  'tin',
  'titanium',
  'lookup',
  'calculate',
  "don't",
  ' of',
  '  ',
  '\n\n',
  '2026',
  '100',
  '"}}\n',
  'Größe',
  '東京',
  '🎉',
  '\u0085',
  '\u00a0',
  '\ufeff',
  'Ġ',
  '\u0000',
  '<|im_end|>',
]
const texts = Array.from({ length: 600 }, (_, i) =>
  Array.from({ length: 1 + (i % 23) }, (__, j) => words[(i * 7 + j * (1 + (i % 11))) % words.length]).join(i % 3 ? ' ' : ''),
)
const tokenizers = {
  listed: createVocabularyTokenizer({ specialTokens, pieces }),
  trained: trainBpe(texts, { vocabularySize: 400, specialTokens }),
}
const shapes = {
  tied: { tieWordEmbeddings: true, qkNorm: true },
  untied: { tieWordEmbeddings: false, qkNorm: true },
  llama: { tieWordEmbeddings: false, qkNorm: false },
}
for (const [tokenizerName, json] of Object.entries(tokenizers)) {
  const tokenizer = new Tokenizer(json, {})
  const encodings = texts.map((text) => ({ text, ids: tokenizer.encode(text, { add_special_tokens: false }).ids }))
  for (const [shapeName, shape] of Object.entries(shapes)) {
    const start = join(folder, `${tokenizerName}-${shapeName}-start`)
    const config = {
      hiddenSize: 96,
      layers: 2,
      heads: 4,
      kvHeads: 2,
      headDim: 24,
      intermediateSize: 256,
      ropeTheta: 10_000,
      rmsNormEps: 1e-6,
      contextLength: 1024,
      ...shape,
    }
    await initModel(start, { config, tokenizer: json, chatTemplate: '{{ messages }}', seed: 1, initStd: 0.2 })
    const { engine, learner, close } = await createLocalEngine({ model: start })
    const tokenIds = Int32Array.from({ length: 40 }, (_, i) => (i * 17) % 256)
    const sample = {
      version: 1,
      tokenIds,
      lossMask: new Uint8Array(40).fill(1, 1),
      rolloutLogprobs: new Float32Array(40),
      weightVersions: [],
      reward: 0,
      advantage: 1,
      group: '',
      agent: '',
      policy: '',
      provenance: { rollout: '', attempt: 0, taskId: '', sample: 0, turns: [] },
    }
    const optimizer = { learningRate: 0.01, betas: [0.9, 0.95], epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 }
    for (let i = 0; i < 3; i++) await learner.update({ samples: [sample], loss: { kind: 'sft', aggregation: 'token-mean' }, optimizer })
    await learner.publish()
    await learner.save(join(folder, `${tokenizerName}-${shapeName}`))
    const promptTokenIds = Int32Array.from({ length: 600 }, (_, i) => (i * i * 7 + 3 * i) % 256)
    const sampling = { temperature: 0.8, topP: 1, topK: 0, maxTokens: 200, stop: [], seed: 0 }
    const random = { seed: 1, task: 'check', sample: 0, turn: 0 }
    const result = await engine.generate({ promptTokenIds, sampling, random, affinity: 'check' }, new AbortController().signal)
    const expected = { encodings, prompt: [...promptTokenIds], ids: [...result.tokenIds], logprobs: [...result.logprobs], temperature: 0.8 }
    await writeFile(join(folder, `${tokenizerName}-${shapeName}`, 'expected.json'), JSON.stringify(expected))
    await close()
  }
}
