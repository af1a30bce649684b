import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  allDone,
  checkUpdate,
  type Learner,
  type TokenEngine,
  TrainError,
  type TrainingSample,
  type UpdateMetrics,
  type UpdateRequest,
} from '@aworld-train/core'
import { writeFolderWhole } from '@aworld-train/engines/local'
import { summarizeUpdates } from '@aworld-train/training'
import type { Policy } from './policy.ts'

/** An open policy as a member of a set of several. */
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
  const { learner, requireWhole } = createSetLearner(members, trained)
  return {
    engine,
    learner,
    reference: members.some(({ reference }) => reference)
      ? { logprobs: (rows, temperature, policies) => logprobsOf(members, (member) => member.reference, rows, temperature, policies) }
      : undefined,
    members: new Map(members.map((member) => [member.name, member])),
    tier: Object.fromEntries(members.map(({ name, tier }) => [name, tier])),
    details: {
      policy: members.map(({ name, trainable, details }) => `${name}${trainable ? '' : ' (frozen)'}: ${details.policy}`).join('; '),
      engine: members.map(({ name, details }) => `${name}: ${details.engine}`).join('; '),
    },
    async saveModel(directory) {
      requireWhole()
      await writeFolderWhole(directory, async (folder) => {
        for (const member of members) await member.saveModel(join(folder, member.name))
      })
    },
    async close() {
      await allDone(members.map((member) => member.close()))
    },
  }
}

function createSetLearner(members: readonly PolicyOfSet[], trained: readonly PolicyOfSet[]) {
  // What failed an update that other policies have made.
  let failure: unknown
  const requireWhole = () => {
    if (failure !== undefined) throw failure
  }
  const learner: Learner = {
    async update(request) {
      requireWhole()
      const { samples, loss, referenceLogprobs, optimizer } = request
      const all = byPolicy(
        trained,
        samples.map(({ policy }) => policy),
      )
      const trains = ({ rows }: Part) => rows.some((row) => samples[row]!.lossMask.includes(1))
      // As one policy takes rows without a trained token beside others, so do several.
      const parts = all.some(trains) ? all.filter(trains) : all
      const requests = parts.map(({ member, rows }): UpdateRequest => {
        const pick = <T>(values: readonly T[]): T[] => rows.map((row) => values[row]!)
        return {
          ...request,
          samples: pick(samples),
          ...(referenceLogprobs && { referenceLogprobs: pick(referenceLogprobs) }),
          loss: loss.kind === 'linear' ? { ...loss, coefficients: pick(loss.coefficients) } : loss,
          optimizer: { ...optimizer, learningRate: optimizer.learningRate * member.rateFactor },
        }
      })
      // What one policy would refuse changes no weights of another.
      for (const [i, { member }] of parts.entries()) namingPolicy(member, () => checkUpdate(requests[i]!, member.engine.model))
      let made = 0
      const updates = parts.map(async ({ member }, i) => {
        const metrics = await ofPolicy(member, member.learner.update(requests[i]!))
        made++
        return metrics
      })
      const updated = await allDone(updates).catch((error) => {
        if (made > 0) failure = error
        throw error
      })
      return combine(samples, parts, updated)
    },
    logprobs: (rows, temperature, policies) => logprobsOf(members, (member) => member.learner, rows, temperature, policies),
    async publish(leastVersion = 0) {
      requireWhole()
      const versions = await allDone(trained.map((member) => member.learner.publish(leastVersion)))
      // All have one version. A policy without a sample in a step that a resumed run repeats is behind the others.
      const newest = Math.max(...versions)
      const behind = trained.filter((_, index) => versions[index] !== newest)
      await allDone(behind.map((member) => member.learner.publish(newest)))
      return newest
    },
    async save(directory) {
      requireWhole()
      await writeFolderWhole(directory, async (folder) => {
        for (const member of trained) await member.learner.save(join(folder, member.name))
      })
    },
    async load(directory, agreed) {
      await checkFolders(directory, members)
      // Every policy has read its folder before the first takes it over.
      const read = trained.map(() => Promise.withResolvers<void>())
      const all = Promise.all(read.map(({ promise }) => promise)).then(agreed)
      const loads = trained.map(async (member, index) => {
        const { resolve, reject } = read[index]!
        const load = member.learner.load(join(directory, member.name), () => {
          resolve()
          return all
        })
        await ofPolicy(member, load).catch((error: unknown) => {
          reject(error)
          throw error
        })
      })
      await allDone([all, ...loads])
      failure = undefined
    },
    async resetOptimizer() {
      for (const member of trained) await member.learner.resetOptimizer()
    },
  }
  return { learner, requireWhole }
}

/** What a policy does, with its name in the message of an error. */
async function ofPolicy<T>({ name }: PolicyOfSet, work: Promise<T>): Promise<T> {
  return await work.catch((error: unknown) => {
    throw withPolicyName(name, error)
  })
}

function namingPolicy({ name }: PolicyOfSet, work: () => void): void {
  try {
    work()
  } catch (error) {
    throw withPolicyName(name, error)
  }
}

function withPolicyName(name: string, error: unknown): unknown {
  if (!(error instanceof TrainError)) return error
  const { code, message, details } = error
  return new TrainError(code, `Policy "${name}": ${message}`, { cause: error, ...(details && { details }) })
}

/** Throws CHECKPOINT_CORRUPT if a checkpoint lacks a policy that is trained, or has the folder of another than these. */
async function checkFolders(directory: string, members: readonly PolicyOfSet[]): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
  const folders = new Set(entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])))
  const names = new Set(members.map(({ name }) => name))
  const trained = new Set(members.flatMap(({ name, trainable }) => (trainable ? [name] : [])))
  const [missing] = trained.difference(folders)
  const [other] = folders.difference(names)
  if (missing === undefined && other === undefined) return
  const what = missing === undefined ? `has the folder "${other}", which is of no policy` : `lacks the folder of policy "${missing}"`
  throw new TrainError(
    'CHECKPOINT_CORRUPT',
    `Checkpoint ${directory} ${what}; it has to have a folder for each of ${[...trained].join(', ')} and no stranger's.`,
  )
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
    const message = `A row is of the policy "${other}", which is not among ${names.map((name) => `"${name}"`).join(', ')}; leave it out.`
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
  await allDone(
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

/** Means by tokens over the policies, and the mean of the norms of their gradients. */
function combine(samples: readonly TrainingSample[], parts: readonly Part[], updated: readonly UpdateMetrics[]): UpdateMetrics {
  const logprobs: Float32Array[] = Array.from(samples, () => new Float32Array(0))
  for (const [i, { rows }] of parts.entries())
    for (const [place, row] of rows.entries()) if (updated[i]!.logprobs) logprobs[row] = updated[i]!.logprobs[place]!
  return {
    ...summarizeUpdates(updated),
    trainedTokens: sum(updated.map((metrics) => metrics.trainedTokens)),
    ...(updated.every((metrics) => metrics.logprobs) && { logprobs }),
  }
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
