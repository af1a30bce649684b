import { createHash } from 'node:crypto'
import type { TrainingTask } from '@aworld-train/core'
import type { Stratify } from '../config/local-config.ts'
import { taskColumn } from '../dataset/task-column.ts'

export interface DrawRequest {
  readonly seed: number
  /** 1-based. */
  readonly step: number
  readonly promptsPerStep: number
  readonly stratify: Stratify | null
  /** Whether kinds alternate, so that any part of the draw has about their mixture. Without it, one kind follows the other. */
  readonly isMixed?: boolean | undefined
}

/**
 * Draws the tasks of a step as a function of seed and step alone. Each kind goes through a shuffled order of its tasks and shuffles again
 * when all were drawn. With `stratify`, each kind gives its count.
 */
export function drawTasks(tasks: readonly TrainingTask[], request: DrawRequest): TrainingTask[] {
  const { seed, step, promptsPerStep, stratify, isMixed = false } = request
  if (stratify === null) return take(tasks, promptsPerStep, { seed, step, stream: '' })
  const drawn = Object.entries(stratify.counts).flatMap(([kind, count]) => {
    const ofKind = tasks.filter((task) => String(taskColumn(task, stratify.key)) === kind)
    return take(ofKind, count, { seed, step, stream: kind }).map((task, i) => ({ task, at: isMixed ? (i + 0.5) / count : 0 }))
  })
  return drawn.sort((a, b) => a.at - b.at).map(({ task }) => task)
}

/** Kinds that `stratify` counts but no task has. */
export function missingKinds(tasks: readonly TrainingTask[], { key, counts }: Stratify): string[] {
  const present = new Set(tasks.map((task) => String(taskColumn(task, key))))
  return Object.entries(counts).flatMap(([kind, count]) => (count > 0 && !present.has(kind) ? [kind] : []))
}

interface Stream {
  readonly seed: number
  readonly step: number
  readonly stream: string
}

function take(tasks: readonly TrainingTask[], count: number, { seed, step, stream }: Stream): TrainingTask[] {
  const first = (step - 1) * count
  let epoch = -1
  let order: number[] = []
  return Array.from({ length: count }, (_, i) => {
    const epochOfTask = Math.floor((first + i) / tasks.length)
    if (epochOfTask !== epoch) {
      epoch = epochOfTask
      order = shuffledIndices(tasks.length, `${seed}/${stream}/${epoch}`)
    }
    return tasks[order[(first + i) % tasks.length]!]!
  })
}

/** The numbers 0 … length - 1 in an order that depends on `key` alone (Fisher-Yates over xoshiro128**, https://prng.di.unimi.it). */
function shuffledIndices(length: number, key: string): number[] {
  const random = createRandom(key)
  const order = Array.from({ length }, (_, index) => index)
  for (let i = length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    ;[order[i], order[j]] = [order[j]!, order[i]!]
  }
  return order
}

function createRandom(key: string): () => number {
  const digest = createHash('sha256').update(key).digest()
  let [a, b, c, d] = [0, 4, 8, 12].map((offset) => digest.readUInt32LE(offset)) as [number, number, number, number]
  const rotate = (value: number, bits: number) => (value << bits) | (value >>> (32 - bits))
  return () => {
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = rotate(d, 11)
    return result / 2 ** 32
  }
}
