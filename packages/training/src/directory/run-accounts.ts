import {
  createTokenReport,
  type Environment,
  type Episode,
  type PolicyGateway,
  type RolloutWriter,
  type RunReport,
  type TokenReport,
  type Trajectory,
} from '@aworld-train/core'
import type { InProcessRolloutRunner } from '@aworld-train/rollout'
import type { OwnedRunStore } from '@aworld-train/store'

/** The parts of a stage that keep counts. */
export interface CallCounters {
  readonly gateway: Pick<PolicyGateway, 'counts'>
  /** `null` if tools run in other processes. */
  readonly environment: Pick<Environment, 'counts'> | null
  readonly runner: Pick<InProcessRolloutRunner, 'counts'>
  engineCalls(): number
}

type Tally = Readonly<Record<string, number>>

/** Counts that are not in the record of episodes. */
export interface CallCounts {
  readonly gatewayCalls: number
  readonly engineCalls: number
  /** Attempts that were lost with their workers. */
  readonly lostAttempts: number
  readonly toolCalls: RunReport['counts']['toolCalls']
  /** Counts of the gateway's calls, for the token report. */
  readonly failures: number
  readonly tolerated: Tally
  readonly parseIssues: Tally
  readonly ignored: Tally
}

export interface CallSummary {
  readonly calls: Pick<RunReport['counts'], 'modelCalls' | 'toolCalls'>
  readonly tokenReport: TokenReport
  /** Attempts of these episodes' rollouts after the first. */
  readonly repeatedAttempts: number
  readonly losses: number
}

/** Summarizes the calls as each side of a wire counted them, with the token report over the calls in the episodes. */
export function summarizeCalls(counts: CallCounts, episodes: Iterable<Episode>): CallSummary {
  return createCallSummary(episodes).finish(counts)
}

/** A summary of these episodes; more can be added. */
function createCallSummary(episodes: Iterable<Episode>) {
  const report = createTokenReport()
  let agent = 0
  let repeatedAttempts = 0
  function add({ attempt, messages, trajectories, rewardTrajectories }: Episode): void {
    repeatedAttempts += attempt
    for (const { role } of messages) if (role === 'assistant') agent += 1
    report.add(trajectories, rewardTrajectories)
  }
  for (const episode of episodes) add(episode)
  return {
    add,
    /** Calls of frozen models by a reward that sees groups, which come when their episodes have been added. */
    addReward: (trajectories: readonly Trajectory[] | undefined) => report.add([], trajectories),
    finish(counts: CallCounts): CallSummary {
      const { gatewayCalls: gateway, engineCalls: engine, toolCalls, lostAttempts: losses } = counts
      const calls = { modelCalls: { agent, gateway, engine }, toolCalls }
      return { calls, tokenReport: report.finish(counts), repeatedAttempts, losses }
    },
  }
}

/** The counts of this process. */
export async function countCallsOf(counters: CallCounters): Promise<CallCounts> {
  if (!counters.environment) return countsSoFar(counters)
  const { toolCalls: environment, serverToolCalls } = await counters.environment.counts()
  const { toolCalls, ...others } = countsSoFar(counters)
  return { ...others, toolCalls: { ...toolCalls, environment, servers: environment === 0 ? 0 : serverToolCalls } }
}

/** Counts without asking the servers: only the calls that agents sent them in attempts that have ended. */
function countsSoFar({ gateway, runner, engineCalls }: CallCounters): CallCounts {
  const { calls, failures, tolerated, parseIssues = {}, ignored = {} } = gateway.counts()
  const { askedToolCalls, toolCalls: agent, functionCalls: functions, lostAttempts } = runner.counts()
  const environment = agent - functions
  return {
    gatewayCalls: calls,
    engineCalls: engineCalls(),
    lostAttempts,
    toolCalls: { asked: askedToolCalls, agent, environment, functions, servers: environment === 0 ? 0 : null },
    failures,
    tolerated,
    parseIssues,
    ignored,
  }
}

/** Counts and times over the processes of a run. */
interface Accounts {
  readonly counts: CallCounts
  readonly wallMs: number
  readonly cpuMs: number
}

const nothing: Accounts = {
  counts: {
    gatewayCalls: 0,
    engineCalls: 0,
    lostAttempts: 0,
    toolCalls: { asked: 0, agent: 0, environment: 0, functions: 0, servers: 0 },
    failures: 0,
    tolerated: {},
    parseIssues: {},
    ignored: {},
  },
  wallMs: 0,
  cpuMs: 0,
}

/** The accounts of all processes of a run. Each process continues from what the previous one saved. */
export interface RunAccounts {
  /** Wraps a store so that results written to it are counted. None is then read again when the run ends. */
  counted<Store extends Pick<RolloutWriter, 'finish' | 'keepScores'>>(store: Store): Store
  /** Adds the counts of these sources from this point on. */
  attach(counters: CallCounters): void
  /** Saves the accounts, at most every half second. A killed process loses its counts since the last save. */
  touch(): void
  /** Resolves to the accounts of the run so far and of the episodes in its store. Nothing is saved after this. */
  finish(): Promise<CallSummary & Pick<Accounts, 'wallMs' | 'cpuMs'>>
  /** Saves the accounts if `finish` was not called. */
  close(): Promise<void>
}

const stateKey = 'accounts'
const saveEveryMs = 500

/** Begins the accounts of this process. */
export function openRunAccounts(store: OwnedRunStore): RunAccounts {
  const startedAt = Date.now()
  const cpuAtStart = process.cpuUsage()
  const earlier = earlierAccounts(store)
  const summary = createCallSummary(store.episodes())
  let counters: CallCounters | null = null
  let savedAt = startedAt
  let finished = false

  function add(counts: CallCounts): Accounts {
    const cpu = process.cpuUsage(cpuAtStart)
    return sum(earlier, { counts, wallMs: Date.now() - startedAt, cpuMs: (cpu.user + cpu.system) / 1000 })
  }
  // An error of the store reaches those who need the store.
  const save = () => store.setState(stateKey, add(counters ? countsSoFar(counters) : nothing.counts)).catch(() => {})

  return {
    counted: (writer) => ({
      ...writer,
      async finish(episode, worker, files) {
        await writer.finish(episode, worker, files)
        summary.add(episode)
      },
      async keepScores(scores) {
        await writer.keepScores(scores)
        for (const { rewardTrajectories } of scores) summary.addReward(rewardTrajectories)
      },
    }),
    attach(opened) {
      counters = opened
    },
    touch() {
      if (finished || Date.now() - savedAt < saveEveryMs) return
      savedAt = Date.now()
      void save()
    },
    async finish() {
      finished = true
      const accounts = add(counters ? await countCallsOf(counters) : nothing.counts)
      await store.setState(stateKey, accounts)
      const { counts, wallMs, cpuMs } = accounts
      return { ...summary.finish(counts), wallMs, cpuMs }
    },
    async close() {
      if (!finished) await save()
    },
  }
}

/** The accounts that earlier processes saved, with at least as many calls as the store has turns of these processes. */
function earlierAccounts(store: OwnedRunStore): Accounts {
  const saved = (store.getState(stateKey) as Accounts | undefined) ?? nothing
  const { turns, sampledTurns } = store.counts()
  const gatewayCalls = Math.max(saved.counts.gatewayCalls, turns)
  const engineCalls = Math.max(saved.counts.engineCalls, sampledTurns)
  return { ...saved, counts: { ...saved.counts, gatewayCalls, engineCalls } }
}

/** Adds the numbers of two records of the same shape. A name may be in only one of them. `null` means unknown and makes the sum `null`. */
function sum<T>(a: T, b: T): T {
  if (typeof a === 'number' && typeof b === 'number') return (a + b) as T
  if (a === null || b === null) return null as T
  const both = { ...a, ...b } as Record<string, unknown>
  for (const [name, value] of Object.entries(a as object))
    if (name in (b as object)) both[name] = sum(value, (b as Record<string, unknown>)[name])
  return both as T
}
