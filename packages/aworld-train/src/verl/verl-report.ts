import { join } from 'node:path'
import type { RunReport, Sampling } from '@aworld-train/protocol'
import type { RunAccounts } from '@aworld-train/run'
import { runVersions } from '@aworld-train/run'
import { type OwnedRunStore, writeJsonAtomically } from '@aworld-train/store'
import {
  checkpointSteps,
  type createVerlProgress,
  readLedger,
  toTokenLedger,
  type VerlPlan,
  type VerlTokenLedger,
  valueAt,
} from '@aworld-train/trainer-verl'
import { verlEvaluations } from './verl-evaluations.ts'
import type { VerlHistory } from './verl-history.ts'
import type { VerlTrainingPlan } from './verl-training-plan.ts'

export interface VerlReportRequest {
  readonly plan: VerlTrainingPlan
  readonly verlPlan: VerlPlan
  readonly store: OwnedRunStore
  readonly path: string
  readonly status: RunReport['status']
  readonly history: VerlHistory
  readonly progress: ReturnType<typeof createVerlProgress>
  readonly accounts: RunAccounts
  readonly warmUpMs: number
  readonly warnings: () => RunReport['warnings']
  readonly warn: (code: string, message: string) => void
}

/** Writes `report.json` of a run with verl, and beside it `ledger.json`, which says more of the ledger than a report holds. */
export async function leaveVerlReport(request: VerlReportRequest): Promise<RunReport> {
  const { plan, store, path, status, history, progress, warmUpMs } = request
  const incarnation = history.incarnations().at(-1)?.incarnation
  if (incarnation !== undefined) await keepPhases(store, incarnation, progress.phasesMs())
  const ledger = ledgerOf(request)
  warnOfLedger(ledger, request)
  const evaluations = plan.config.settings.reward.native || plan.test === null ? [] : evaluationsOf(request, plan.test)
  const before = evaluations.find(({ step }) => step === 0) ?? null
  const after = evaluations.findLast(({ step }) => step > 0) ?? null
  const { calls, tokenReport, wallMs, cpuMs } = await request.accounts.finish()
  const report: RunReport = {
    version: 1,
    run: plan.name,
    path,
    status,
    seed: plan.seed,
    engine: `verl ${plan.python.report.packages['verl'] ?? ''}`.trim(),
    tier: { python: plan.python.report.version, packages: plan.python.report.packages },
    before,
    after,
    greedyBefore: null,
    greedyAfter: null,
    curve: curveOf(request),
    ledger: ledger.ledger,
    tokenReport,
    counts: { rollouts: store.counts().finished, episodesByStopReason: { ...store.stopReasons() }, ...calls },
    times: {
      wallMs,
      cpuMs,
      phasesMs: { ...(warmUpMs > 0 ? { 'warm-up': warmUpMs } : {}), ...allPhases(request) },
    },
    warnings: request.warnings(),
    checkpoints: checkpointSteps(request.verlPlan.checkpoints).map((step) => join('checkpoints', `global_step_${step}`)),
    versions: { ...runVersions(), ...installed(plan.python.report.packages) },
  }
  await writeJsonAtomically(join(path, 'ledger.json'), { version: 1, ...ledger, incarnations: history.incarnations() })
  await writeJsonAtomically(join(path, 'report.json'), report)
  return report
}

function warnOfLedger({ ledger, trainedTwice, logprobDifference }: VerlTokenLedger, { plan, path, warn }: VerlReportRequest): void {
  const { smoke, logprobCheck } = plan.config.settings
  const { first } = logprobDifference
  const file = join(path, 'ledger.json')
  if (ledger.unexplained !== 0)
    warn('LEDGER_UNEXPLAINED', `${ledger.unexplained} sampled tokens are neither trained nor accounted for; read ${file}.`)
  if (trainedTwice.length > 0) warn('LEDGER_TRAINED_TWICE', `${trainedTwice.length} rollouts stand in two batches of verl; read ${file}.`)
  // In bf16 the two sides differ by more than any tolerance that would find a wrong token.
  if (smoke && first !== null && !(first <= logprobCheck.tolerance))
    warn(
      'POLICY_LOGPROB_MISMATCH',
      `At the first update logprobs of sampled tokens differ by ${first} between rollout and actor, above ${logprobCheck.tolerance}: other tokens or weights were trained than sampled.`,
    )
}

function ledgerOf({ plan, verlPlan, store, path, history }: VerlReportRequest): VerlTokenLedger {
  const incarnations = history.incarnations()
  return toTokenLedger({
    ledgers: incarnations.map(({ incarnation }) => readLedger(path, incarnation)),
    incarnations,
    calls: store.calls(),
    episode: (key) => store.episode(key),
    rows: {
      rows: plan.config.settings.rows,
      limits: {
        maxPromptTokens: numberAt(verlPlan, 'data.max_prompt_length'),
        maxResponseTokens: numberAt(verlPlan, 'data.max_response_length'),
      },
      reward: plan.config.settings.reward.native ? 'native' : 'service',
      incompleteEpisodes: plan.config.settings.incompleteEpisodes,
    },
  })
}

function evaluationsOf({ plan, verlPlan, store, history }: VerlReportRequest, test: NonNullable<VerlTrainingPlan['test']>) {
  const at = (name: string) => valueAt(verlPlan.tree, `actor_rollout_ref.rollout.val_kwargs.${name}`)
  const response = numberAt(verlPlan, 'data.max_response_length')
  // verl 0.9 reads no do_sample here (experimental/agent_loop/agent_loop.py).
  const sampling: Sampling = {
    temperature: Number(at('temperature') ?? 0),
    topP: Number(at('top_p') ?? 1),
    topK: Math.max(0, Number(at('top_k') ?? 0)),
    maxTokens: Math.min(response, plan.config.settings.maxCompletionTokens ?? response),
    stop: [],
    seed: plan.seed,
  }
  return verlEvaluations({
    episodes: store.episodes({ split: 'test' }),
    evaluatedSteps: history.evaluatedSteps(),
    test,
    samples: Number(at('n') ?? 1),
    sampling,
    kindKey: plan.config.settings.evaluation.kindKey,
  })
}

const phasesState = 'verl-phases'
type Phases = Readonly<Record<string, number>>

/** Keeps the times of one start of verl, so that a start after it adds its own to them. */
export async function keepPhases(store: OwnedRunStore, incarnation: string, phasesMs: Phases): Promise<void> {
  await store.setState(phasesState, {
    ...(store.getState(phasesState) as Record<string, Phases> | undefined),
    [incarnation]: { ...phasesMs },
  })
}

/** Times of all starts of verl, those of steps that a later start did again included. */
function allPhases({ store }: VerlReportRequest): Record<string, number> {
  const phases: Record<string, number> = {}
  for (const start of Object.values((store.getState(phasesState) as Record<string, Phases> | undefined) ?? {}))
    for (const [phase, ms] of Object.entries(start)) phases[phase] = (phases[phase] ?? 0) + ms
  return phases
}

/** Rewards of the steps that are kept; a step without a reward in verl's metrics is left out. */
function curveOf({ store, progress }: VerlReportRequest): RunReport['curve'] {
  const steps = new Map(store.steps().map(({ step, metrics }) => [step, metrics]))
  for (const { step, metrics } of progress.steps()) steps.set(step, metrics)
  return [...steps]
    .sort(([a], [b]) => a - b)
    .flatMap(([step, metrics]) => {
      const reward = metrics['rewardMean']
      return reward === undefined ? [] : [{ step, reward, metrics: { ...metrics } }]
    })
}

const installed = (packages: Readonly<Record<string, string | null>>) =>
  Object.fromEntries(Object.entries(packages).filter((entry): entry is [string, string] => entry[1] !== null))

function numberAt({ tree }: VerlPlan, path: string): number {
  const value = valueAt(tree, path)
  return typeof value === 'number' ? value : Number.MAX_SAFE_INTEGER
}
