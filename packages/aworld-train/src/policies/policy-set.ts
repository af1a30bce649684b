import { join } from 'node:path'
import { type Learner, type TokenEngine, TrainError, type TrainingSample, type UpdateMetrics } from '@aworld-train/core'
import { writeFolderWhole } from '@aworld-train/engines/local'
import type { Policy } from './policy.ts'

/** One of several policies. */
export interface PolicyOfSet extends Policy {
  readonly name: string
  readonly trainable: boolean
  /** Its learning rate as a factor of the training's. */
  readonly rateFactor: number
}

/**
 * Several policies as the one that a loop samples, trains, publishes and saves. A sample goes to the learner of its policy. A checkpoint is a
 * folder with a folder for each policy that is trained, and appears whole or not at all.
 */
export function createPolicySet(members: readonly [PolicyOfSet, ...PolicyOfSet[]]): Policy {
  const trained = members.filter(({ trainable }) => trainable)
  const [first] = members
  const engine: TokenEngine = {
    ...first.engine,
    sampledTokens: () => sum(members.map((member) => member.engine.sampledTokens())),
    weightVersion: () => Math.max(...trained.map((member) => member.engine.weightVersion())),
  }
  return {
    engine,
    learner: createSetLearner(members, trained),
    reference: members.some(({ reference }) => reference)
      ? { logprobs: (rows, temperature, policies) => logprobsOf(members, (member) => member.reference, rows, temperature, policies) }
      : undefined,
    members: new Map(members.map((member) => [member.name, member])),
    tier: first.tier,
    details: {
      policy: members.map(({ name, trainable, details }) => `${name}${trainable ? '' : ' (frozen)'}: ${details.policy}`).join('; '),
      engine: first.details.engine,
    },
    async saveModel(directory) {
      await writeFolderWhole(directory, async (folder) => {
        for (const member of members) await member.saveModel(join(folder, member.name))
      })
    },
    async close() {
      await Promise.all(members.map((member) => member.close()))
    },
  }
}

function createSetLearner(members: readonly PolicyOfSet[], trained: readonly PolicyOfSet[]): Learner {
  return {
    async update(request) {
      const { samples, loss, referenceLogprobs, optimizer } = request
      const parts = byPolicy(
        trained,
        samples.map(({ policy }) => policy),
      )
      const updated = await Promise.all(
        parts.map(async ({ member, rows }) => {
          const pick = <T>(values: readonly T[]): T[] => rows.map((row) => values[row]!)
          return await member.learner.update({
            ...request,
            samples: pick(samples),
            ...(referenceLogprobs && { referenceLogprobs: pick(referenceLogprobs) }),
            loss: loss.kind === 'linear' ? { ...loss, coefficients: pick(loss.coefficients) } : loss,
            optimizer: { ...optimizer, learningRate: optimizer.learningRate * member.rateFactor },
          })
        }),
      )
      return combine(samples, parts, updated)
    },
    logprobs: (rows, temperature, policies) => logprobsOf(members, (member) => member.learner, rows, temperature, policies),
    async publish(leastVersion = 0) {
      // All have one version. A policy that had no sample in a step of a resumed run is behind the others.
      const publish = (least: number) => Promise.all(trained.map((member) => member.learner.publish(least)))
      const versions = await publish(leastVersion)
      const newest = Math.max(...versions)
      return versions.every((version) => version === newest) ? newest : Math.max(...(await publish(newest + 1)))
    },
    async save(directory) {
      await writeFolderWhole(directory, async (folder) => {
        for (const member of trained) await member.learner.save(join(folder, member.name))
      })
    },
    async load(directory) {
      for (const member of trained) await member.learner.load(join(directory, member.name))
    },
    async resetOptimizer() {
      for (const member of trained) await member.learner.resetOptimizer()
    },
  }
}

interface Part {
  readonly member: PolicyOfSet
  /** Indices of its rows among all. */
  readonly rows: readonly number[]
}

/** The rows of each policy, in the order of the policies. Throws CONFIG_INVALID for a row of a policy that is not among them. */
function byPolicy(members: readonly PolicyOfSet[], policies: readonly string[]): Part[] {
  const names = members.map(({ name }) => name)
  const other = policies.find((policy) => !names.includes(policy))
  if (other !== undefined) {
    const message = `A row is of the policy "${other}", which is not among ${names.map((name) => `"${name}"`).join(', ')}; leave it out of the update.`
    throw new TrainError('CONFIG_INVALID', message)
  }
  const groups = Map.groupBy(policies.keys(), (row) => policies[row]!)
  return members.flatMap((member) => {
    const rows = groups.get(member.name)
    return rows ? [{ member, rows }] : []
  })
}

async function logprobsOf(
  members: readonly PolicyOfSet[],
  modelOf: (member: PolicyOfSet) => Pick<Learner, 'logprobs'> | undefined,
  rows: readonly Int32Array[],
  temperature: number,
  policies: readonly string[] | undefined,
): Promise<Float32Array[]> {
  if (policies === undefined)
    throw new TrainError(
      'CONFIG_INVALID',
      'Of several policies, logprobs() needs the policy of each row; pass their names as its third argument.',
    )
  const results = new Array<Float32Array>(rows.length)
  await Promise.all(
    byPolicy(members, policies).map(async ({ member, rows: own }) => {
      const logprobs = await modelOf(member)!.logprobs(
        own.map((row) => rows[row]!),
        temperature,
        own.map(() => member.name),
      )
      for (const [i, row] of own.entries()) results[row] = logprobs[i]!
    }),
  )
  return results
}

/** Means by tokens over the policies, and the norm of all their gradients. */
function combine(samples: readonly TrainingSample[], parts: readonly Part[], updated: readonly UpdateMetrics[]): UpdateMetrics {
  const trainedTokens = sum(updated.map((metrics) => metrics.trainedTokens))
  const mean = (key: 'loss' | 'clipFraction' | 'entropy' | 'kl') =>
    sum(updated.map((metrics) => metrics[key] * metrics.trainedTokens)) / Math.max(1, trainedTokens)
  const norms = updated.flatMap(({ gradNorm }) => gradNorm ?? [])
  const logprobs = new Array<Float32Array>(samples.length)
  for (const [i, { rows }] of parts.entries())
    for (const [place, row] of rows.entries()) if (updated[i]!.logprobs) logprobs[row] = updated[i]!.logprobs[place]!
  return {
    loss: mean('loss'),
    ...(norms.length > 0 && { gradNorm: Math.hypot(...norms) }),
    clipFraction: mean('clipFraction'),
    entropy: mean('entropy'),
    kl: mean('kl'),
    trainedTokens,
    ...(updated.every((metrics) => metrics.logprobs) && { logprobs }),
  }
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
