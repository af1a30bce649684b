import { describeFailure, type Episode, invocationTree, messageModels, scoringContext, TrainError, tokenReport } from '@aworld-train/core'
import { readFiles, readRun } from '@aworld-train/store'
import { createReward, readRunData } from '@aworld-train/training'
import { openVerifier } from 'aworld-train'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { renderEpisode, renderInvocations, renderRewardCalls, visible } from '../terminal/episode-text.ts'
import { wrapLabelled } from '../terminal/text-width.ts'
import { renderTokenReport } from '../terminal/token-report-text.ts'
import { bestAndWorst } from './best-and-worst.ts'

export const replay = defineCommand({
  arguments: [
    { name: 'run', description: 'run directory', required: true },
    { name: 'rollout', description: 'key of a rollout (default: the best and the worst of the last evaluation)' },
  ],
  options: z.object({
    task: z.string().optional().describe('only episodes of this task'),
    split: z.string().optional().describe('only episodes of this split: train, test, validation'),
    reward: z.string().optional().describe('score again with this reward, ./reward.ts#name'),
    all: z.boolean().optional().describe('every episode that matches, not only the first of them'),
    tokens: z.boolean().optional().describe('show token counts of each turn, and where a client broke the record'),
  }),
  async run({ args, options, signal }) {
    const run = readRun(args[0] as string)
    const reward = options.reward === undefined ? null : await createReward(options.reward, { openVerifier })
    try {
      const data = reward ? await readRunData(run.path) : null
      let shown = 0
      const isFiltered = options.all || [args[1], options.split, options.task].some((each) => each !== undefined)
      const keys = isFiltered ? [args[1]] : bestAndWorst(run)
      function* chosen() {
        for (const key of keys) yield* firstOrAll(run.episodes({ key, split: options.split, taskId: options.task }), options.all)
      }
      const { columns } = process.stdout
      const write = (text: string, labelWidth = 0) =>
        process.stdout.write(`${columns === undefined ? text : wrapLabelled(text, columns, labelWidth)}\n`)
      for (const failure of isFiltered ? [] : run.failures()) write(`failed   ${describeFailure(failure)}\n`, 9)
      for (const episode of chosen()) {
        shown += 1
        process.stdout.write(`${episode.rollout}  attempt ${episode.attempt}  task ${episode.taskId}  ${episode.stopReason}\n`)
        const text =
          invocationTree(episode.trajectories).length > 1
            ? renderInvocations(episode, columns)
            : renderEpisode({ ...episode, models: messageModels(episode), columns })
        process.stdout.write(`${text}\n`)
        const calls = renderRewardCalls(episode, columns)
        if (calls !== '') process.stdout.write(`${calls}\n`)
        for (const { name, source, content } of episode.toolCalls)
          if (source !== undefined) write(`tool ${name} threw at ${source}: ${content}`)
        const { error } = episode
        if (error) write(`${error.code}${error.source === undefined ? '' : ` at ${error.source}`}: ${error.message}`)
        if (options.tokens) {
          for (const { id, turns } of episode.trajectories) {
            for (const turn of turns) {
              const origin = turn.parent === null ? turn.branchReasons.join('+') || 'root' : `continues ${turn.parent}`
              process.stdout.write(
                `  ${visible(id)} turn ${turn.index}: ${turn.promptTokenIds.length} prompt + ${turn.completionTokenIds.length} sampled, ${origin}, ${turn.finishReason.unified}\n`,
              )
            }
          }
          for (const line of renderTokenReport(tokenReport(episode.trajectories))) process.stdout.write(`${line}\n`)
        }
        if (reward && data) {
          const task = data.tasks.get(episode.taskId)
          const answer = data.answers.get(episode.taskId)
          if (!task || !answer)
            throw new TrainError(
              'DATASET_INVALID',
              `The run has no task "${episode.taskId}" in its train, validation or test_data.parquet; it cannot be scored again.`,
            )
          const { reward: value, scores } = await reward.score(
            { task, episode, answer, files: await readFiles(run.path, episode.files ?? []) },
            scoringContext(signal),
          )
          process.stdout.write(
            `rescored ${value ?? 'not scored'}${Object.keys(scores).length > 0 ? `  ${JSON.stringify(scores)}` : ''}  (was ${episode.reward ?? 'not scored'})\n`,
          )
        }
        process.stdout.write('\n')
      }
      if (shown === 0)
        throw new TrainError('CONFIG_INVALID', `No episode of ${args[0]} matches; leave out --task, --split or the rollout key.`)
      return undefined
    } finally {
      await reward?.close()
      run.close()
    }
  },
})

function* firstOrAll(episodes: Iterable<Episode>, all = false): Generator<Episode> {
  for (const episode of episodes) {
    yield episode
    if (!all) return
  }
}
