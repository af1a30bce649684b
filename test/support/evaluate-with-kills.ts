import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EvaluationReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { readEvaluation } from '@aworld-train/training'
import { expect } from 'vitest'
import { createRandom } from '../../examples/terminal/random.ts'
import { runCli } from './run-cli.ts'
import { startJudge } from './scripted-judge.ts'

const tasks = 24
const samples = 2
const concurrency = 6
const callsOfRollout = 2

/** Asks twice; what it asks names the rollout. */
const agent = `export default async function adder(task, { baseUrl, apiKey, rollout }) {
  const messages = []
  for (const step of ['sum', 'check']) {
    messages.push({ role: 'user', content: rollout + ' ' + step + ' ' + task.input })
    const body = JSON.stringify({ model: 'any', messages })
    const response = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers: { authorization: 'Bearer ' + apiKey }, body })
    const { choices, error } = await response.json()
    if (error) throw new Error(error.message)
    messages.push(choices[0].message)
  }
  return messages.at(-1).content
}
`

/** The same for the same question: right for two thirds of the rollouts. */
function answerTo(question: string): string {
  const [rollout, , sum] = question.split(' ')
  const [left, right] = sum!.split('+').map(Number)
  const sample = Number(rollout!.split('/').at(-1))
  return String(left! + right! + ((left! + sample) % 3 === 0 ? 1 : 0))
}

/**
 * Evaluates by the command line, undisturbed and killed at random moments by SIGKILL, and expects the same report of both; that no rollout
 * whose result was kept is asked for again; and that each kill loses at most what was under way.
 */
export async function evaluateWithKills(kills: number, seed: number): Promise<void> {
  const random = createRandom(seed)
  const folder = await mkdtemp(join(tmpdir(), 'evaluation-kills-'))
  const answered: string[] = []
  let onAnswer = () => {}
  const provider = await startJudge(async (question) => {
    await sleep(20 + 40 * random())
    answered.push(question)
    onAnswer()
    return answerTo(question)
  })
  try {
    await writeFile(join(folder, 'agent.ts'), agent)
    await writeFile(join(folder, 'reward.ts'), 'export default (_source, answer, truth) => Number(answer === String(truth))\n')
    const rows = Array.from({ length: tasks }, (_, index) => `${index}+${index},${2 * index},${index % 2 ? 'odd' : 'even'}\n`)
    await writeFile(join(folder, 'sums.csv'), `question,answer,parity\n${rows.join('')}`)
    await writeFile(join(folder, 'config.json'), JSON.stringify({ models: { large: provider.settings } }))
    const command = (runPath: string) => [
      ...['eval', './agent.ts', '--data', 'sums.csv', '--reward', './reward.ts', '--model', 'large', '--config', 'config.json'],
      ...['--kind', 'parity', '--samples', String(samples), '--concurrency', String(concurrency), '--run-path', runPath],
    ]
    const evaluate = (runPath: string, onStart?: (kill: () => void) => void) =>
      runCli(command(runPath), {
        cwd: folder,
        env: { JUDGE_KEY: 'judge-secret' },
        onStart: (child) => onStart?.(() => void child.kill('SIGKILL')),
      })

    const undisturbed = await evaluate('undisturbed')
    expect(undisturbed.code, undisturbed.stderr).toBe(0)
    expect(provider.questions).toHaveLength(tasks * samples * callsOfRollout)

    await mkdir(join(folder, 'killed'))
    let isStarted = false
    let calls = provider.questions.length
    let kept: ReadonlySet<string> = new Set()
    for (let kill = 1; kill <= kills + 1; kill++) {
      const afterAnswers = 1 + Math.floor((random() * (tasks * samples * callsOfRollout - 6)) / kills)
      const before = answered.length
      const result = await evaluate('killed', (end) => {
        if (kill > kills) return
        // One in four anywhere after the start of the process, the others while the model is asked.
        if (random() < 0.25) return void setTimeout(end, 3_000 * random())
        onAnswer = () => {
          if (answered.length - before === afterAnswers) setTimeout(end, 60 * random())
        }
      })
      onAnswer = () => {}
      const rolloutsOf = (questions: readonly string[]) => new Set(questions.map((question) => question.split(' ')[0]!))
      const asked = rolloutsOf(provider.questions.slice(calls))
      calls = provider.questions.length
      expect([...asked].filter((rollout) => kept.has(rollout))).toEqual([])
      if (kill > kills) {
        expect(result.code, result.stderr).toBe(0)
        break
      }
      expect(result.signal, result.stderr).toBe('SIGKILL')
      isStarted ||= (await readdir(join(folder, 'killed'))).length > 0
      kept = isStarted ? await keptIn(join(folder, 'killed')) : kept
      // The others of those that were asked for were under way.
      expect([...asked].filter((rollout) => !kept.has(rollout)).length).toBeLessThanOrEqual(concurrency)
    }
    expect(await reportIn(join(folder, 'killed'))).toEqual(await reportIn(join(folder, 'undisturbed')))
  } finally {
    await provider.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function onlyRun(runPath: string): Promise<string> {
  const names = await readdir(runPath)
  expect(names).toHaveLength(1)
  return join(runPath, names[0]!)
}

/** The rollouts whose results a killed run has. */
async function keptIn(runPath: string): Promise<ReadonlySet<string>> {
  const run = readRun(await onlyRun(runPath))
  try {
    return new Set(Array.from(run.episodes(), ({ rollout }) => rollout))
  } finally {
    run.close()
  }
}

/** The report and results of a run without its place, its times, and the calls that its gateway answered to attempts that were killed. */
async function reportIn(runPath: string) {
  const path = await onlyRun(runPath)
  const { rows } = await readEvaluation(path)
  const report = EvaluationReport.parse(JSON.parse(await readFile(join(path, 'report.json'), 'utf8')))
  return {
    ...report,
    path: null,
    startedAt: null,
    times: null,
    counts: { ...report.counts, modelCalls: { ...report.counts.modelCalls, gateway: null } },
    perRollout: { ...report.perRollout, seconds: null },
    rows: rows.map((row) => ({ ...row, durationMs: null })),
  }
}
