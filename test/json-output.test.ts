import { appendFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseEvents, runCli } from './support/run-cli.ts'
import { makeTinyModel } from './support/tiny-model.ts'
import { makeProject } from './support/tiny-project.ts'

let folder: string
let model: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-json-'))
  model = await makeTinyModel(join(folder, 'model'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

const agentText = `import { spawn } from 'node:child_process'
import { once } from 'node:events'
console.log('agent loaded')
export async function agent(task: any, { baseUrl, apiKey, model }: any) {
  process.stdout.write('agent runs, and ends no line')
  await once(spawn('echo', ['a program of the agent'], { stdio: 'inherit' }), 'close')
  const response = await fetch(baseUrl + '/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + apiKey },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: task.input }] }),
  })
  return (await response.json()).choices[0].message.content
}
`

/** It runs in a thread of its own, and prints more than a pipe takes at once. */
const rewardText = `console.log('reward loaded')
export function saysYes(_dataSource: string, solution: string): number {
  console.log('reward scores ' + 'x'.repeat(100_000))
  return solution.trim() === 'yes' ? 1 : 0
}
`

/** A project each file of which prints. */
async function makeLoudProject(config: Record<string, unknown> = {}): Promise<string> {
  const project = await makeProject(folder, model, {
    definition: { testDataset: './train.jsonl' },
    config: { training: { steps: 1 }, ...config },
    files: { 'agent.ts': agentText, 'reward.ts': rewardText },
  })
  await appendFile(join(project.folder, 'aworld-train.config.ts'), "console.log('configuration loaded')\n")
  return project.folder
}

const printed = ['configuration loaded', 'agent loaded', 'agent runs', 'a program of the agent', 'reward loaded', 'reward scores']

describe('with --json, standard output is for programs alone, and what the code of a project prints goes to standard error', () => {
  it('train', async () => {
    const { code, stdout, stderr } = await runCli(['train', await makeLoudProject(), '--json'])
    expect(code, stderr.slice(-2000)).toBe(0)
    expect(parseEvents(stdout).at(-1)).toMatchObject({ type: 'run-end', status: 'finished' })
    for (const text of printed) expect(stderr).toContain(text)
  })

  it('train, with agents in child processes', async () => {
    const executor = { engineName: 'local', workerNum: 1 }
    const { code, stdout, stderr } = await runCli(['train', await makeLoudProject({ executor }), '--json'])
    expect(code, stderr.slice(-2000)).toBe(0)
    expect(parseEvents(stdout).at(-1)).toMatchObject({ type: 'run-end', status: 'finished' })
    for (const text of printed) expect(stderr).toContain(text)
  })

  it('eval', async () => {
    const { code, stdout, stderr } = await runCli(['eval', await makeLoudProject(), '--json'])
    expect(code, stderr.slice(-2000)).toBe(0)
    expect(parseEvents(stdout).some(({ type }) => type === 'evaluation-end')).toBe(true)
    for (const text of printed) expect(stderr).toContain(text)
  })

  it('doctor', async () => {
    const { code, stdout, stderr } = await runCli(['doctor', await makeLoudProject(), '--json'])
    expect(code, stderr.slice(-2000)).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ problems: 0 })
    for (const text of printed) expect(stderr).toContain(text)
  })
})
