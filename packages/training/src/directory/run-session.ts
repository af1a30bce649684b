import { join } from 'node:path'
import { displayPath, type RunEvent, type RunReport } from '@aworld-train/core'
import { writeJsonAtomically } from '@aworld-train/store'
import type { Registry } from 'prom-client'
import type { LocalConfig } from '../config/local-config.ts'
import { type KeptCheckpoint, watchCollapse } from '../events/collapse-watch.ts'
import { createEpisodeSampler } from '../events/episode-sampler.ts'
import { openRunLogs } from '../events/run-logs.ts'
import { watchTruncation } from '../events/truncation-watch.ts'
import type { Findings } from '../inputs/named-dataset.ts'
import { raiseFindings } from '../inputs/raise-findings.ts'
import { type HealthSources, watchHealth } from './health-watch.ts'
import type { CallCounters, RunAccounts } from './run-accounts.ts'
import type { RunDirectory } from './run-directory.ts'
import { runVersions } from './run-files.ts'

export interface RunSessionOptions {
  readonly run: RunDirectory
  readonly accounts: RunAccounts
  readonly name: string
  readonly seed: number
  readonly settings: Pick<LocalConfig, 'logging' | 'projectName' | 'experimentName'>
  /** A sentence that names the limit of answers, for a run whose answers are mostly cut by it. */
  readonly remedy: string
  readonly checkpoints: () => readonly KeptCheckpoint[]
  /** Steps after this one are trained again. Default: none. */
  readonly resumedFromStep?: number | undefined
}

/** A training from the opening of its parts to its report. */
export interface RunSession {
  /** Metrics that its gateway shows. */
  readonly registry: Registry
  /** Keeps an event of the training and hands it to everything that follows the training. */
  onEvent(event: RunEvent): void
  /** Calls `listener` with every event. */
  listen(listener: (event: RunEvent) => void): void
  /** Reports that everything is open: counts and health are kept from here on, and the run begins. */
  begin(stack: AsyncDisposableStack, beginning: RunBeginning): void
  /** Writes `report.json`. */
  leaveReport(result: TrainingResult): Promise<RunReport>
}

export interface RunBeginning {
  readonly stage: CallCounters & Pick<HealthSources, 'runner'>
  /** The policy that is trained, by the name that agents know it by. */
  readonly engines: HealthSources['engines']
  /** `null` if no trainer connects. */
  readonly channel: HealthSources['channel']
  /** `null` for a new run. */
  readonly resumedFromStep: number | null
  readonly details: Readonly<Record<string, unknown>>
  /** The policy that each agent asks for, if there are several. */
  readonly policyOfAgent?: Readonly<Record<string, string>> | undefined
  readonly findings: Findings
}

/** What the trainer of a run knows for its report. The rest is from the run's store and accounts. */
export type TrainingResult = Pick<
  RunReport,
  | 'model'
  | 'checkpoint'
  | 'status'
  | 'engine'
  | 'tier'
  | 'before'
  | 'after'
  | 'greedyBefore'
  | 'greedyAfter'
  | 'curve'
  | 'ledger'
  | 'agents'
  | 'maxLogprobDifference'
  | 'checkpoints'
> & {
  readonly counts: Pick<RunReport['counts'], 'rollouts' | 'notStarted' | 'episodesByStopReason'>
  /** Times of the phases of a run that took `wallMs`. */
  phasesMs(wallMs: number): Readonly<Record<string, number>>
  /** Versions of what trains, beside those of every run. */
  readonly versions?: Readonly<Record<string, string>>
}

/** Opens what follows the events of a training; `stack` closes it. */
export async function openRunSession(stack: AsyncDisposableStack, options: RunSessionOptions): Promise<RunSession> {
  const { run, accounts, name, seed, settings, remedy, checkpoints, resumedFromStep } = options
  const { path, store, emit, warnings } = run
  const collapses = watchCollapse(emit, { store, warnings, checkpoints })
  const sampler = createEpisodeSampler(store, watchTruncation(collapses, remedy))
  const logs = await openRunLogs(stack, { path, name, settings, store, resumedFromStep, emit })
  const listeners = [logs.read, sampler.onEvent]
  return {
    registry: logs.registry,
    onEvent(event) {
      for (const listener of listeners) listener(event)
      accounts.touch()
    },
    listen: (listener) => void listeners.push(listener),
    begin(owner, { stage, engines, channel, resumedFromStep: resumed, details, policyOfAgent, findings }) {
      accounts.attach(stage)
      watchHealth(owner, { store, emit, sources: { ...stage, engines, channel } })
      run.started()
      emit({
        type: 'run-start',
        version: 1,
        at: Date.now(),
        run: name,
        path: displayPath(path),
        seed,
        resumedFromStep: resumed,
        details: { ...details, ...logs.details },
        ...(policyOfAgent && { policyOfAgent }),
      })
      raiseFindings(emit, findings)
    },
    async leaveReport({ counts, phasesMs, versions, ...result }) {
      const { calls, tokenReport, repeatedAttempts, losses, wallMs, cpuMs } = await accounts.finish()
      const report: RunReport = {
        version: 1,
        kind: 'training',
        run: name,
        path,
        seed,
        ...result,
        failures: store.failures(),
        tokenReport,
        counts: { ...counts, attempts: counts.rollouts + repeatedAttempts, losses, ...calls },
        times: { wallMs, cpuMs, phasesMs: phasesMs(wallMs) },
        warnings: warnings(),
        versions: { ...runVersions(), ...versions },
      }
      await writeJsonAtomically(join(path, 'report.json'), report)
      return report
    },
  }
}
