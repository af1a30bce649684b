import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { TrainError } from '@aworld-train/core'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { repository, runCli } from './support/run-cli.ts'
import { makeTinyModel } from './support/tiny-model.ts'
import { makeProject, openTrainer, type ProjectChanges, type TinyProject, taskLines } from './support/tiny-project.ts'

let folder: string
let model: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-preflight-'))
  model = await makeTinyModel(join(folder, 'model'), { contextLength: 4096 })
})

afterAll(() => rm(folder, { recursive: true, force: true }))

const toolServer = join(repository, 'packages/environment/src/testing/tool-server.ts')

/** An agent with these MCP servers. */
const agentWith = (mcpServers: object) => `import { Agent } from 'aworld-train'

export const agent = new Agent({ name: 'tiny', systemPrompt: 'Answer.', mcpConfig: ${JSON.stringify({ mcpServers })} })
`
const withServers = (mcpServers: object, changes: ProjectChanges = {}): ProjectChanges => ({
  ...changes,
  files: { 'agent.ts': agentWith(mcpServers), ...changes.files },
})

/** What `train()` is refused with, in this process. */
async function refusal(project: TinyProject): Promise<TrainError> {
  const error = await (await openTrainer(project)).train().catch((thrown: unknown) => thrown)
  if (error instanceof TrainError) return error
  throw new Error('the training was not refused', { cause: error })
}

async function deadPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

const throws = { command: 'node', args: ['-e', 'function open() { throw new Error("no key") }; open()'] }

it('a dead tool server ends the command with one message before anything is written, and a repaired one goes on', async () => {
  const project = await makeProject(folder, model, withServers({ desk: throws }))
  const dead = await runCli(['train', project.folder])
  expect(dead).toMatchObject({ code: 1, stdout: '' })
  expect(dead.stderr.match(/MCP server "desk"/g)).toHaveLength(1)
  expect(dead.stderr).toMatch(/did not start.*exited with code 1[\s\S]*Error: no key[\s\S]*Check its command/)
  expect(dead.stderr).not.toMatch(/^\s+at /m)
  expect(await project.runs()).toEqual([])

  await writeFile(join(project.folder, 'agent.ts'), agentWith({ desk: { command: 'node', args: [toolServer], stateless: true } }))
  const repaired = await runCli(['train', project.folder, '--json'])
  expect(repaired.code, repaired.stderr).toBe(0)
  expect(JSON.parse(repaired.stdout.split('\n')[0]!)).toMatchObject({ type: 'run-start', resumedFromStep: null })
})

it.each([
  ['a command that is not there', { command: 'no-such-command' }, /"desk" \(no-such-command\).*ENOENT.*Check its command/],
  ['a service that refuses', async () => ({ url: `http://127.0.0.1:${await deadPort()}/mcp` }), /"desk".*ECONNREFUSED.*Check its url/],
] as const)('%s is refused, and names what to do', async (_, server, message) => {
  const desk = typeof server === 'function' ? await server() : server
  const project = await makeProject(folder, model, withServers({ desk }))
  const error = await refusal(project)
  expect(error).toMatchObject({ code: 'ENVIRONMENT_START_FAILED', message: expect.stringMatching(message) })
  expect(await project.runs()).toEqual([])
})

it('a service that wants a token is refused, and names the token', async () => {
  const server = createServer((_, response) => response.writeHead(401).end()).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  const error = await refusal(await makeProject(folder, model, withServers({ desk: { url } })))
  expect(error).toMatchObject({ code: 'ENVIRONMENT_START_FAILED', message: expect.stringMatching(/"desk".*401.*token/) })
})

it('what is dead ends it while another server is still slow to start, each problem once', async () => {
  // This server alone would take longer than the test may.
  const slow = { command: 'node', args: ['-e', 'setInterval(() => {}, 1000)'], timeout: 600 }
  const project = await makeProject(folder, model, {
    files: {
      'agent.ts': `import { Agent, Swarm } from 'aworld-train'
const servers = (mcpServers) => ({ mcpConfig: { mcpServers } })
const dead = ${JSON.stringify({ desk: throws })}
export const agent = new Swarm(
  new Agent({ name: 'first', ...servers(${JSON.stringify({ slow })}) }),
  new Agent({ name: 'second', ...servers(dead) }),
  new Agent({ name: 'third', ...servers(dead) }),
)
`,
      'reward.ts': "export const saysYes = () => { throw new Error('out of chalk') }\n",
    },
  })
  const { message } = await refusal(project)
  expect(message.match(/MCP server/g)).toHaveLength(1)
  expect(message).toMatch(/"desk"/)
  expect(message).toMatch(/out of chalk/)
})

it.each([
  ['throws', "throw new Error('out of chalk')", 'REWARD_FAILED', /out of chalk/],
  ['returns no number', 'return { score: 1 }', 'REWARD_INVALID', /returned an object/],
])('a reward by path that %s on the answer of a task is refused, with its file and function', async (_, body, code, message) => {
  const project = await makeProject(folder, model, { files: { 'reward.ts': `export function saysYes(): any {\n  ${body}\n}\n` } })
  const error = await refusal(project)
  expect(error).toMatchObject({ code, message: expect.stringMatching(message) })
  expect(error.message).toMatch(/\.\/reward\.ts#saysYes.*task "task-10"/)
  expect(await project.runs()).toEqual([])
})

it('a reward that reads the whole episode finds a turn and a message in the dry run', async () => {
  const project = await makeProject(folder, model, {
    config: { training: { steps: 1 } },
    files: {
      'reward.ts': `import { defineReward } from 'aworld-train'
export const saysYes = defineReward(({ episode: { trajectories: [first], messages, answer } }) =>
  first.turns.at(-1).completionTokenIds.length > 0 && messages.at(-1).content === answer ? first.turns[0].usage.completionTokens : Number.NaN)
`,
    },
  })
  const report = await (await openTrainer(project)).train()
  expect(report.status).toBe('finished')
})

it('prompts of which none leaves the model room are refused before they are sampled', async () => {
  const long = JSON.stringify({ id: 'long', prompt: 'Is 4 even? '.repeat(2000), answer: 'yes' })
  const definition = { testDataset: './test.jsonl' }
  const files = { 'train.jsonl': `${long}\n`, 'test.jsonl': `${taskLines(4)}\n` }
  const project = await makeProject(folder, model, { definition, files })
  const error = await refusal(project)
  expect(error).toMatchObject({
    code: 'POLICY_CONTEXT_OVERFLOW',
    message: expect.stringMatching(/1 of 5 prompts.*task "long".*4096.*Shorten/),
  })
  expect(await project.runs()).toEqual([])
})

it('Ctrl-C ends the wait for a server that is slow to start, and leaves no run', async () => {
  const marker = join(folder, 'slow-server')
  const code = `require('fs').writeFileSync(${JSON.stringify(marker)}, String(process.pid)); setInterval(() => {}, 1000)`
  const project = await makeProject(folder, model, withServers({ slow: { command: 'node', args: ['-e', code], timeout: 600 } }))
  const { code: exit, stderr } = await runCli(['train', project.folder], {
    onStart: async (child) => {
      while (!existsSync(marker)) await sleep(20)
      child.kill('SIGINT')
    },
  })
  expect(exit, stderr).toBe(130)
  expect(await project.runs()).toEqual([])
})
