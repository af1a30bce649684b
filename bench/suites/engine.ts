import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TrainingSample } from '@aworld-train/core'
import { createLocalEngine, createVocabularyTokenizer, initModel, type LocalEngine, type ModelConfig } from '@aworld-train/engines/local'
import { profileUpdate } from '../../packages/engines/bench/profile.ts'
import { shapes } from '../../packages/engines/bench/shapes.ts'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'

const peerScript = fileURLToPath(new URL('../../packages/engines/bench/torch_peer.py', import.meta.url))
const threads = 2
const rows = 32
const length = 64
const seconds = 2
const peerDeadlineMs = 300_000

interface Rates {
  readonly train: number
  readonly sample: number
}

/**
 * Training and sampling beside PyTorch on the CPU, in turns, two threads each:
 * `npm run bench -- engine [python with torch] [rounds]`; without one, `uv` fetches torch from PyPI.
 */
export const engine: BenchSuite = {
  async run([python, roundsText = '3']) {
    const rounds = Number(roundsText)
    const measured: BenchRow[] = []
    const notes: string[] = [`${threads} threads each, ${rows} rows of ${length} tokens, ${rounds} rounds of ${seconds} s in turns.`]
    for (const name of ['1.1M', '6.4M']) {
      const model = shapes[name]!
      const ours: Record<'relaxed' | 'plain', Rates[]> = { relaxed: [], plain: [] }
      const torch: Rates[] = []
      for (let round = 0; round < rounds; round++) {
        for (const simd of ['relaxed', 'plain'] as const) ours[simd].push(await measureOurs(model, simd))
        const peer = await measureTorch(model, python)
        if (typeof peer === 'string') notes.push(`PyTorch was not measured: ${peer}`)
        else torch.push(peer)
      }
      for (const simd of ['relaxed', 'plain'] as const) {
        for (const kind of ['train', 'sample'] as const) {
          const spread = spreadOf(ours[simd].map((rates) => rates[kind]))
          const peer: BenchRow['peers'] = torch.length > 0 ? { torch: compare(spread, spreadOf(torch.map((rates) => rates[kind]))) } : {}
          measured.push({ measure: `${kind} ${name} ${simd}`, unit: 'tokens/s', better: 'higher', ours: spread, peers: peer })
        }
      }
      const shares = Object.entries(await profileUpdate(model, 'relaxed'))
      notes.push(
        `profile of an update, ${name}: ${shares
          .slice(0, 8)
          .map(([kernel, share]) => `${kernel} ${(share * 100).toFixed(1)} %`)
          .join(', ')}`,
      )
    }
    return { rows: measured, notes: [...new Set(notes)] }
  },
}

async function measureOurs(model: ModelConfig, simd: 'plain' | 'relaxed'): Promise<Rates> {
  const home = await mkdtemp(join(tmpdir(), 'bench-engine-'))
  let local: LocalEngine | undefined
  try {
    const { vocabularySize, ...config } = model
    const specialTokens = ['<|im_start|>', '<|im_end|>']
    const pieces = Array.from({ length: vocabularySize - 256 - specialTokens.length }, (_, index) => `word${index}`)
    const directory = join(home, 'model')
    await initModel(directory, {
      config,
      tokenizer: createVocabularyTokenizer({ specialTokens, pieces }),
      chatTemplate: '{{ messages }}',
      seed: 1,
    })
    local = await createLocalEngine({ model: directory, threads, simd, maxRows: rows })
    const { learner, engine: tokens } = local
    const samples = Array.from({ length: rows }, (_, index) => randomSample(index, vocabularySize))
    const train = async (): Promise<number> => {
      await learner.update({
        samples,
        loss: { kind: 'sft', aggregation: 'token-mean' },
        optimizer: { learningRate: 1e-3, betas: [0.9, 0.98], epsilon: 1e-8, weightDecay: 0.01, maxGradNorm: 1 },
      })
      return rows * length
    }
    const sample = async (): Promise<number> => {
      const before = tokens.sampledTokens()
      const { signal } = new AbortController()
      await Promise.all(
        samples.map(({ tokenIds }, index) =>
          tokens.generate(
            {
              promptTokenIds: tokenIds.slice(0, 4),
              sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: length, stop: [], seed: 0 },
              random: { seed: before, task: String(index), sample: 0, turn: 0 },
              affinity: String(index),
            },
            signal,
          ),
        ),
      )
      return tokens.sampledTokens() - before
    }
    // Sampling first: training would teach the model to stop, or not to.
    const sampled = await rate(sample)
    return { sample: sampled, train: await rate(train) }
  } finally {
    await local?.close()
    await rm(home, { recursive: true, force: true })
  }
}

/** Tokens a second after a second of warm-up, in which WebAssembly is compiled for speed and PyTorch fills its caches. */
async function rate(step: () => Promise<number>): Promise<number> {
  for (const warm = performance.now(); performance.now() - warm < 1000; ) await step()
  const start = performance.now()
  let tokens = 0
  while (performance.now() - start < seconds * 1000) tokens += await step()
  return (tokens / (performance.now() - start)) * 1000
}

function randomSample(index: number, vocabularySize: number): TrainingSample {
  const tokenIds = Int32Array.from({ length }, (_, token) => (index * 7919 + token * 104_729 + ((token * token) % 31)) % vocabularySize)
  return {
    version: 2,
    tokenIds,
    lossMask: Uint8Array.from(tokenIds, (_, token) => (token === 0 ? 0 : 1)),
    rolloutLogprobs: new Float32Array(length),
    weightVersions: [],
    reward: 0,
    advantage: null,
    group: 'bench',
    agent: 'bench',
    trajectory: 'bench',
    policy: 'bench',
    provenance: { rollout: String(index), attempt: 0, taskId: String(index), sample: 0, turns: [0] },
  }
}

/** The peer's rates, or why there are none. */
async function measureTorch(model: ModelConfig, python: string | undefined): Promise<Rates | string> {
  const [command, ...args] = python
    ? [python, peerScript]
    : ['uv', 'run', '--quiet', '--no-project', '--with', 'torch,numpy', 'python', peerScript]
  const child = spawn(command!, args, { stdio: ['pipe', 'pipe', 'inherit'], signal: AbortSignal.timeout(peerDeadlineMs) })
  const failed = new Promise<string>((resolve) => child.once('error', (error) => resolve(`${command} could not run (${error.message}).`)))
  const text = (async () => {
    let out = ''
    for await (const chunk of child.stdout) out += chunk
    return out
  })()
  child.stdin.on('error', () => {})
  child.stdin.end(JSON.stringify({ model, threads, rows, length, seconds }))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const outcome = await Promise.race([failed, ended])
  if (typeof outcome === 'string') return outcome
  return outcome === 0 ? (JSON.parse(await text) as Rates) : `${command} ended with code ${outcome}.`
}
