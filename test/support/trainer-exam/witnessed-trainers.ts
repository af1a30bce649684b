import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Learner, TrainingSample, UpdateMetrics } from '@aworld-train/core'
import type { TrainedBatch } from '@aworld-train/testing'
import { AgentTrainer } from 'aworld-train'
import { LocalTrainer } from '../../../packages/aworld-train/src/local/local-trainer.ts'
import { localPolicy } from '../../../packages/aworld-train/src/policies/local-policy.ts'
import type { PolicyKind } from '../../../packages/aworld-train/src/policies/policy.ts'
import { tinkerPolicy } from '../../../packages/aworld-train/src/policies/tinker-policy.ts'

/** Options of a witness, which writes the batches of each update and, if it can, the published weights. */
export interface WitnessOptions {
  /** Folder that gets `batches-<start>.jsonl` and `weights-<step>`. */
  readonly folder: string
  /** Distinguishes the starts of one run, in alphabetical order. */
  readonly start: string
  /** A fault between the loop and the witness. */
  readonly fault?: ((learner: Learner) => Learner) | undefined
  /** Whether the engine samples with the weights that the run began with. */
  readonly isStale?: boolean | undefined
}

/** Registers the trainers `local-witnessed` and `tinker-witnessed`: those of the product, with a witness between loop and learner. */
export function registerWitnessedTrainers(options: WitnessOptions): void {
  for (const [name, kind] of [
    ['local-witnessed', localPolicy],
    ['tinker-witnessed', tinkerPolicy],
  ] as const) {
    class Witnessed extends LocalTrainer {
      protected override readonly policyKind = witnessed(kind, options)
    }
    AgentTrainer.unregisterProcessor(name)
    AgentTrainer.registerProcessor(name, Witnessed)
  }
}

function witnessed(kind: PolicyKind, { folder, start, fault = (learner) => learner, isStale = false }: WitnessOptions): PolicyKind {
  return {
    ...kind,
    choose(...input) {
      const chosen = kind.choose(...input)
      return {
        ...chosen,
        async open(model, signal) {
          const policy = await chosen.open(model, signal)
          const { learner } = policy
          await mkdir(folder, { recursive: true })
          // A start publishes its initial weights, and then those of each step. A resumed start continues the count.
          let step = 0
          return {
            ...policy,
            learner: fault({
              logprobs: (...input) => learner.logprobs(...input),
              save: (directory) => learner.save(directory),
              resetOptimizer: () => learner.resetOptimizer(),
              async load(directory) {
                await learner.load(directory)
                step = Number(/\d+$/.exec(directory)?.[0] ?? 0)
              },
              async update(request) {
                const metrics = await learner.update(request)
                const line = JSON.stringify(toBatch(step, request.samples, metrics))
                await appendFile(join(folder, `batches-${start}.jsonl`), `${line}\n`)
                return metrics
              },
              async publish() {
                const version = isStale && step > 0 ? policy.engine.weightVersion() : await learner.publish()
                if (kind === localPolicy) await policy.saveModel(join(folder, `weights-${start}-${step}`))
                step++
                return version
              },
            }),
          }
        },
      }
    },
  }
}

function toBatch(step: number, samples: readonly TrainingSample[], { loss, logprobs }: UpdateMetrics): TrainedBatch {
  return {
    step,
    loss,
    rows: samples.map(({ tokenIds, lossMask, advantage }, row) => {
      const mask = Array.from(lossMask)
      const places = mask.flatMap((bit, at) => (bit === 1 ? [at] : []))
      return {
        tokenIds: Array.from(tokenIds),
        mask,
        advantages: mask.map((bit) => bit * advantage!),
        logprobs: logprobs ? mask.map((_, at) => logprobs[row]![places.indexOf(at)] ?? 0) : null,
        gradients: null,
      }
    }),
  }
}
