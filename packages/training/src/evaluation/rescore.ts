import { join } from 'node:path'
import { displayPath, type EvaluationWithResults, type RolloutRequest, TrainError } from '@aworld-train/core'
import { endEvent, rescoreEpisode, runInSlots, scoreGroup } from '@aworld-train/rollout'
import { readFiles, readRun } from '@aworld-train/store'
import { openPolicyGateway } from '../agent-side/policy-gateway.ts'
import { writeParquet } from '../dataset/write-parquet.ts'
import { openRunAccounts } from '../directory/run-accounts.ts'
import { inRunDirectory, type RunDirectory } from '../directory/run-directory.ts'
import type { FinishedEvaluation } from './compare.ts'
import { type EvaluationRequest, identityOf } from './evaluate-agent.ts'
import type { EvaluationPlan } from './evaluation-plan.ts'
import { evaluationName, leaveReport, rankKey, requestsOf } from './leave-report.ts'

export interface RescoreRequest extends EvaluationRequest {
  /** The evaluation whose episodes are scored. */
  readonly from: FinishedEvaluation
}

/**
 * Scores the episodes of an evaluation with the reward of `plan`, in a run directory of its own; neither agent nor model is asked. The
 * report compares with that evaluation. Rejects with CONFIG_INVALID if the plan has no reward or other tasks.
 */
export async function rescoreEvaluation(plan: EvaluationPlan, { from, ...request }: RescoreRequest): Promise<EvaluationWithResults> {
  const { path: source, model, checkpoint, policies } = from.report
  const { signal } = request
  await using stack = new AsyncDisposableStack()
  const reward = stack.adopt(await plan.createReward(), (each) => each?.close())
  if (!reward) throw new TrainError('CONFIG_INVALID', 'There is no reward to score with; name one with --rescore ./reward.ts.')
  // The same command over other episodes is another run, and so is the agent at work under the same reward.
  const identity = identityOf(plan, { 'the episodes': [source, from.report.startedAt] })
  return await inRunDirectory({ ...request, ...identity, sandboxes: [] }, async (run) => {
    const { path, store, emit, started } = run
    await using opened = new AsyncDisposableStack()
    const accounts = opened.adopt(openRunAccounts(store), (each) => each.close())
    await writeParquet(plan.dataset.tasks, plan.dataset.answers, join(path, 'test_data.parquet'))
    started()
    const tasks = `${plan.dataset.tasks.length} x ${plan.samplesPerTask}`
    const details = { episodes: `of ${displayPath(source)}`, reward: reward.name, tasks }
    emit({
      type: 'run-start',
      version: 1,
      at: Date.now(),
      run: plan.name,
      path: displayPath(path),
      seed: plan.seed,
      resumedFromStep: null,
      details,
    })
    const requests = requestsOf(plan, model ?? 'model')
    emit({ type: 'evaluation-start', at: Date.now(), name: evaluationName, rollouts: requests.length })
    const earlier = opened.adopt(readRun(source), (each) => each.close())
    const counted = accounts.counted(store)
    const scoring = {
      reward,
      answerKey,
      seed: plan.seed,
      store,
      scoreUnfinished: plan.settings.reward.unfinished,
      requiresModelCall: false,
      models: await openJudges(opened, plan, emit),
    }
    const byKey = new Map(requests.map((each) => [each.key, each]))
    await runInSlots([...byKey.keys()], plan.settings.concurrency, async (key) => {
      signal.throwIfAborted()
      const task = byKey.get(key)!
      const episode = earlier.episode(key)
      if (!episode) return
      requireSameTask(task, earlier.rollout(key)!.request, source)
      const { attempt, episode: scored } = await store.begin(task)
      if (scored) return
      const files = await readFiles(source, episode.files ?? [])
      const result = await rescoreEpisode(episode, task, { ...scoring, files, signal, attempt })
      // A scoring that was stopped is no result; the next process of the run makes it.
      signal.throwIfAborted()
      await counted.finish(result, null, files)
      emit(endEvent(result))
    })
    for (const group of Map.groupBy(requests, (each) => each.group).values()) {
      const members = group.flatMap(({ key }) => store.episode(key) ?? [])
      await scoreGroup(group, members, scoring, signal)
    }
    const episodes = requests.map(({ key }) => store.episode(key))
    const weights = { model, checkpoint, policies }
    const isRank = reward.kind === 'rank'
    await store.setState(rankKey, isRank)
    const report = await leaveReport(run, plan, { requests, episodes, weights, isRank, accounts, against: from })
    // Rollouts that the other evaluation did not start have no episode here either.
    await store.complete()
    return report
  })

  function answerKey(taskId: string) {
    return plan.dataset.answers.get(taskId) ?? { version: 1 as const, taskId, groundTruth: null }
  }
}

/** The frozen models of the plan behind a gateway, for rewards that ask them; `null` if there are none. */
async function openJudges(stack: AsyncDisposableStack, { settings, agent, seed }: EvaluationPlan, onEvent: RunDirectory['emit']) {
  const names = Object.keys(settings.models)
  if (names.length === 0) return null
  const { models, gateway: calls, reward } = settings
  const gateway = await openPolicyGateway(stack, { policies: {}, models, directory: agent.directory, seed, calls, agents: [], onEvent })
  return { gateway, names, maxCost: reward.maxCost }
}

function requireSameTask({ key, task }: RolloutRequest, { task: other }: RolloutRequest, source: string): void {
  if (task.hash === other.hash) return
  throw new TrainError(
    'CONFIG_INVALID',
    `Rollout ${key} of ${source} is of another task than "${task.id}" is now: what its agent got has changed. Score it with the same tasks.`,
  )
}
