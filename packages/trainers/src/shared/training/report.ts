import { join } from 'node:path'
import { createAgentTokens, type RunReport, type Sampling, type TrainerPlan, type UntrainedReason } from '@aworld-train/core'
import { type OwnedRunStore, writeJsonAtomically } from '@aworld-train/store'
import type { RunSession } from '@aworld-train/training'
import { readLedger } from '../ledger/read-ledger.ts'
import { type TrainerTokenLedger, toTokenLedger } from '../ledger/to-token-ledger.ts'
import { trainerEvaluations } from './evaluations.ts'
import type { TrainerHistory } from './history.ts'
import type { createTrainerProgress } from './progress.ts'
import type { PythonTrainingPlan } from './training-plan.ts'

export interface TrainerReportRequest {
  readonly plan: PythonTrainingPlan
  readonly planned: TrainerPlan
  readonly store: OwnedRunStore
  readonly path: string
  /** The model that the training began with. */
  readonly model: string
  readonly status: RunReport['status']
  readonly history: TrainerHistory
  readonly progress: ReturnType<typeof createTrainerProgress>
  readonly session: Pick<RunSession, 'leaveReport'>
  readonly warmUpMs: number
  readonly warn: (code: string, message: string) => void
}

/** Writes `report.json` of a run with a framework, and beside it `ledger.json`, which has more of the ledger than a report holds. */
export async function leaveTrainerReport(request: TrainerReportRequest): Promise<RunReport> {
  const { plan, planned, store, path, status, history, progress, warmUpMs } = request
  const { trainer } = plan
  const incarnation = history.incarnations().at(-1)?.incarnation
  if (incarnation !== undefined) await keepPhases(plan.trainer.name, store, incarnation, progress.phasesMs())
  const ledger = ledgerOf(request)
  warnOfLedger(ledger, request)
  const evaluations = plan.config.settings.reward.native || plan.test === null ? [] : evaluationsOf(request, plan.test)
  const before = evaluations.find(({ step }) => step === 0) ?? null
  const after = evaluations.findLast(({ step }) => step > 0) ?? null
  const checkpoints = trainer.checkpoints.steps(planned.checkpoints).map(trainer.checkpoints.pathOf)
  await writeJsonAtomically(join(path, 'ledger.json'), { version: 1, ...ledger, incarnations: history.incarnations() })
  return await request.session.leaveReport({
    model: request.model,
    checkpoint: checkpoints.at(-1) ?? null,
    status,
    engine: frameworkOf(plan),
    tier: { python: plan.python.report.version, packages: plan.python.report.packages },
    before,
    after,
    greedyBefore: null,
    greedyAfter: null,
    curve: curveOf(request),
    ledger: ledger.ledger,
    agents: agentsOf(store, ledger),
    maxLogprobDifference: ledger.logprobDifference.largest,
    checkpoints,
    counts: { rollouts: store.counts().finished, episodesByStopReason: { ...store.stopReasons() } },
    phasesMs: () => ({ ...(warmUpMs > 0 && { 'warm-up': warmUpMs }), ...allPhases(request) }),
    versions: installed(plan.python.report.packages),
  })
}

/** Reports on each agent: its counts from the store, and what the framework did with its rows. */
function agentsOf(store: OwnedRunStore, { agents }: TrainerTokenLedger): RunReport['agents'] {
  const counts = createAgentTokens(store.agentTokens())
  for (const [agent, { trained, untrained }] of Object.entries(agents)) {
    counts.add(agent, trained, null)
    for (const [reason, tokens] of Object.entries(untrained)) counts.add(agent, tokens, reason as UntrainedReason)
  }
  return counts.byAgent
}

function warnOfLedger(
  { ledger, trainedTwice, logprobDifference }: TrainerTokenLedger,
  { plan, planned, path, warn }: TrainerReportRequest,
): void {
  const { logprobTolerance } = planned
  const { largest } = logprobDifference
  const file = join(path, 'ledger.json')
  if (ledger.unexplained !== 0)
    warn('LEDGER_UNEXPLAINED', `${ledger.unexplained} sampled tokens are neither trained nor accounted for; read ${file}.`)
  if (trainedTwice.length > 0)
    warn('LEDGER_TRAINED_TWICE', `${trainedTwice.length} rollouts stand in two batches of ${plan.trainer.name}; read ${file}.`)
  if (logprobTolerance !== null && largest !== null && !(largest <= logprobTolerance))
    warn(
      'POLICY_LOGPROB_MISMATCH',
      `Logprobs of sampled tokens differ by ${largest} between rollout and actor, above ${logprobTolerance}: other tokens or weights were trained than sampled.`,
    )
}

function ledgerOf({ plan, planned, store, path, history }: TrainerReportRequest): TrainerTokenLedger {
  const incarnations = history.incarnations()
  return toTokenLedger({
    ledgers: incarnations.map(({ incarnation }) => readLedger(path, incarnation)),
    incarnations,
    calls: store.calls(),
    episode: (key) => store.episode(key),
    rows: {
      rows: plan.config.settings.rows,
      limits: planned.limits,
      reward: plan.config.settings.reward.native ? 'native' : 'service',
      incompleteEpisodes: plan.config.settings.incompleteEpisodes,
      ownReward: plan.config.settings.ownReward,
    },
  })
}

function evaluationsOf({ plan, planned, store, history }: TrainerReportRequest, test: NonNullable<PythonTrainingPlan['test']>) {
  const { samples, ...evaluation } = planned.evaluation
  const { maxResponseTokens } = planned.limits
  const maxTokens = Math.min(maxResponseTokens, plan.config.settings.maxCompletionTokens ?? maxResponseTokens)
  const sampling: Sampling = { ...evaluation, maxTokens, stop: [], seed: plan.seed }
  return trainerEvaluations({
    store,
    evaluatedSteps: history.evaluatedSteps(),
    test,
    samples,
    sampling,
    kindKey: plan.config.settings.evaluation.kindKey,
  })
}

/** Name and installed version of the framework. */
export const frameworkOf = ({ trainer, python }: PythonTrainingPlan): string =>
  [trainer.name, python.report.packages[trainer.python.distribution] ?? ''].join(' ').trim()

const phasesStateOf = (trainer: string) => `${trainer}-phases`
type Phases = Readonly<Record<string, number>>

/** Keeps the times of one start; a later start adds its own. */
export async function keepPhases(trainer: string, store: OwnedRunStore, incarnation: string, phasesMs: Phases): Promise<void> {
  const state = phasesStateOf(trainer)
  await store.setState(state, {
    ...(store.getState(state) as Record<string, Phases> | undefined),
    [incarnation]: { ...phasesMs },
  })
}

/** Times of all starts, including steps that a later start repeated. */
function allPhases({ plan, store }: TrainerReportRequest): Record<string, number> {
  const phases: Record<string, number> = {}
  for (const start of Object.values((store.getState(phasesStateOf(plan.trainer.name)) as Record<string, Phases> | undefined) ?? {}))
    for (const [phase, ms] of Object.entries(start)) phases[phase] = (phases[phase] ?? 0) + ms
  return phases
}

/** Rewards of the steps that are kept. A step without a reward in its metrics is left out. */
function curveOf({ store, progress }: TrainerReportRequest): RunReport['curve'] {
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
