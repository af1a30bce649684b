import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RunReport } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { repository, runCli } from '../../support/run-cli.ts'
import { makeProject, type TinyProject, taskLines } from '../../support/tiny-project.ts'

const steps = 4

/** Waits in its second step for as long as there is a file `hold`, so that the trainer is killed there and nowhere else. */
const agentText = `import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export async function agent(task, { rollout, baseUrl, apiKey, model, signal }) {
  const [split, step] = rollout.split('/')
  while (split === 'train' && Number(step) > 1 && existsSync(new URL('./hold', import.meta.url))) await sleep(50, undefined, { signal })
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: task.input }] })
  const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' }
  const response = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers, body, signal })
  return (await response.json()).choices[0].message.content
}
`

interface Event {
  readonly type: string
  readonly step?: number
  readonly resumedFromStep?: number | null
}

export interface ResumeOptions {
  /** The interpreter of the trainer's environment. */
  readonly python: () => Promise<string>
  /** Steps that the trainer itself counts for one of ours, which has two passes. */
  readonly updatesPerStep: number
}

/** A trainer killed in the middle of a step; the same command goes on from its checkpoint, and the model of the run is exported. */
export function describeResume(trainer: string, { python, updatesPerStep }: ResumeOptions): void {
  let folder: string
  let project: TinyProject
  let env: Record<string, string>

  beforeAll(async () => {
    env = { AWORLD_TRAIN_PYTHON: await python() }
    folder = await mkdtemp(join(tmpdir(), `aworld train ${trainer}-`))
    project = await makeProject(folder, join(repository, 'examples/periodic-table/model'), {
      definition: { testDataset: './test.jsonl' },
      config: { training: { steps, promptsPerStep: 2, samplesPerPrompt: 4, passes: 2, checkpointEvery: 1, learningRate: 1e-3 } },
      files: { 'agent.ts': agentText, hold: '', 'test.jsonl': `${taskLines(4, 40)}\n` },
    })
  }, 900_000)

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true })
  })

  /** The same command each time; `onEvent` sees its events as they come. */
  async function train(onEvent: (event: Event) => void) {
    const onLine = (line: string) => line.startsWith('{') && onEvent(JSON.parse(line) as Event)
    return await runCli(['train', project.folder, '--engine', trainer, '--json'], { env, onLine, deadlineMs: 540_000 })
  }

  /** The processes of the run, servers of the trainer included, or those of one module. */
  const processes = (module?: string) =>
    readdirSync('/proc').flatMap((name) => {
      try {
        const isOurs = /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'utf8').includes(`AWORLD_TRAIN_RUN_PATH=${folder}`)
        const isMeant = module === undefined || readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(`-m\0${module}\0`)
        return isOurs && isMeant ? [Number(name)] : []
      } catch {
        return []
      }
    })

  describe(trainer, () => {
    it('says so when it is killed in mid-step, and leaves no process', async () => {
      let killed = 0
      const { code, stdout, stderr } = await train(({ type, step }) => {
        if (type !== 'step-start' || step !== updatesPerStep + 1) return
        for (const pid of processes(`aworld_train_bridge.${trainer}`)) process.kill(pid, 'SIGKILL')
        killed++
      })
      expect([code, killed], stdout + stderr).toEqual([1, 1])
      expect(stdout + stderr).toContain('TRAINER_PROCESS_DIED')
      await expect.poll(() => processes(), { timeout: 60_000 }).toEqual([])
      await rm(join(project.folder, 'hold'))
    }, 600_000)

    it('goes on from its checkpoint: all steps, none twice, and the first agrees about its logprobs', async () => {
      const starts: Event[] = []
      const { code, stdout, stderr } = await train((event) => void (event.type === 'run-start' && starts.push(event)))
      expect(code, stdout + stderr).toBe(0)
      expect(starts).toMatchObject([{ resumedFromStep: updatesPerStep }])
      const [path, ...others] = (await project.runs()) as [string, ...string[]]
      expect(others).toEqual([])
      const report = RunReport.parse(JSON.parse(await readFile(join(path, 'report.json'), 'utf8')))
      expect(report).toMatchObject({
        status: 'finished',
        before: { step: 0, failed: 0 },
        after: { step: updatesPerStep * steps, failed: 0 },
      })
      expect(report.ledger).toMatchObject({ unexplained: 0 })
      const ledger = JSON.parse(await readFile(join(path, 'ledger.json'), 'utf8'))
      expect(ledger).toMatchObject({ trainedTwice: [] })
      expect(ledger.incarnations).toHaveLength(2)
      const [first] = trainedLines(path, ledger.incarnations[1].incarnation)
      expect(first).toMatchObject({ step: updatesPerStep + 1 })
      expect(first!.maxLogprobDifference).toBeLessThanOrEqual(1e-4)
    }, 600_000)

    it('exports the newest checkpoint as a Hugging Face folder', async () => {
      const target = join(folder, 'model')
      const [run] = (await project.runs()) as [string]
      const { code, stdout, stderr } = await runCli(['export', run, '--what', 'model', '--to', target], {
        cwd: folder,
        env,
        deadlineMs: 240_000,
      })
      expect(code, stdout + stderr).toBe(0)
      expect(stdout).toContain(`after step ${updatesPerStep * steps}`)
      for (const file of ['config.json', 'model.safetensors', 'tokenizer.json']) expect(existsSync(join(target, file)), file).toBe(true)
      expect(JSON.parse(await readFile(join(target, 'config.json'), 'utf8'))).toMatchObject({ model_type: 'qwen3', dtype: 'float32' })
    }, 300_000)
  })
}

/** The batches that a start trained, in their order. */
function trainedLines(path: string, incarnation: string): { readonly step: number; readonly maxLogprobDifference: number }[] {
  const directory = join(path, 'ledger', incarnation)
  return readdirSync(directory)
    .filter((name) => name.startsWith('trained-'))
    .flatMap((name) => readFileSync(join(directory, name), 'utf8').split('\n').filter(Boolean))
    .map((line) => JSON.parse(line))
    .sort((a, b) => a.step - b.step)
}
