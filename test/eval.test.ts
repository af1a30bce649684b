import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from './support/run-cli.ts'

let folder: string
let url: string
const asked: string[] = []
/** Questions that are refused now. */
const refused = new Set<string>()

const server = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  response.setHeader('content-type', 'application/json')
  if (request.url === '/v1/models') return void response.end(JSON.stringify({ object: 'list', data: [{ id: 'small' }, { id: 'large' }] }))
  const { model, messages } = JSON.parse(body) as { model: string; messages: { content: string }[] }
  const question = messages.at(-1)!.content
  asked.push(question)
  if (refused.has(question)) return void response.writeHead(500).end('{"error":{"message":"It is broken."}}')
  const sum = question.split('+').reduce((total, part) => total + Number(part), 0)
  const content = String(model === 'small' && sum > 12 ? sum + 1 : sum)
  const usage = { prompt_tokens: 100_000, completion_tokens: 10_000, total_tokens: 110_000 }
  const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }]
  response.end(JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: `${model}-2026`, choices, usage }))
})

const agent = `export default async function adder(task, { baseUrl, apiKey }) {
  const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: task.input }] })
  const response = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers: { authorization: 'Bearer ' + apiKey }, body })
  const { choices, error } = await response.json()
  if (error) throw new Error(error.message)
  return choices[0].message.content
}
`

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-eval-'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  await writeFile(join(folder, 'agent.ts'), agent)
  await writeFile(join(folder, 'reward.ts'), 'export default (_source, answer, truth) => Number(answer === String(truth))\n')
  await writeFile(join(folder, 'even.ts'), 'export default (_source, answer) => Number(answer % 2 === 0)\n')
  const rows = Array.from({ length: 8 }, (_, index) => `${index}+${index},${2 * index},${index < 4 ? 'low' : 'high'}\n`)
  await writeFile(join(folder, 'sums.csv'), `question,answer,size\n${rows.join('')}`)
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
})

const evaluate = (...args: string[]) => runCli(['eval', ...args], { cwd: folder, env: { COLUMNS: '80' } })
const setup = () => ['./agent.ts', '--data', 'sums.csv', '--reward', './reward.ts', '--kind', 'size', '--price', '1,10']
/** What was printed, without times, places and the width of the terminal. */
const report = (stdout: string) =>
  stdout
    .slice(stdout.indexOf('agent with'))
    .replaceAll(url.slice(7, -3), 'HOST')
    .replaceAll(/[\d.]+ s\s+a\s+rollout/g, 'T s a rollout')
    .replaceAll(/^look[\s\S]*?\d{8}-\d{6}\n/gm, '')
    .replaceAll(/, \d+ \w{3}:/g, ', DATE:')

describe('eval', { concurrent: false }, () => {
  it('evaluates an agent with a model behind an address, and compares two models', async () => {
    const small = await evaluate(...setup(), '--model', `${url}#small`, '--samples', '2')
    expect(small.code, small.stderr).toBe(0)
    expect(report(small.stdout)).toMatchInlineSnapshot(`
      "agent with small at HOST, which answers as small-2026
      reward   0.875 [0.529, 0.978] on 8 tasks
               8 tasks give an interval 0.45 wide: smaller differences are chance;
               more tasks narrow it
      pass@k   2: 0.875 [0.53, 0.98]   majority@2: 0.875
      by kind  low 1.00 [0.51, 1.00] (4 tasks)  high 0.75 [0.30, 0.95] (4 tasks)
      floor    0.13 by always saying the most frequent answer
      cost     $3.20: 1.6 M tokens in, 160 k out; 1.0 turns, 0.0 tools, T s a rollout
      "
    `)
    const large = await evaluate(...setup(), '--model', `${url}#large`, '--samples', '2', '--compare', 'last')
    expect(large.code, large.stderr).toBe(0)
    expect(report(large.stdout)).toMatchInlineSnapshot(`
      "agent with large at HOST, which answers as large-2026
      reward   1.000 [0.676, 1.000] on 8 tasks
               8 tasks give an interval 0.32 wide: smaller differences are chance;
               more tasks narrow it
      pass@k   2: 1.000 [0.68, 1.00]   majority@2: 1.000
      by kind  low 1.00 [0.51, 1.00] (4 tasks)  high 1.00 [0.51, 1.00] (4 tasks)
      floor    0.13 by always saying the most frequent answer
      cost     $3.20: 1.6 M tokens in, 160 k out; 1.0 turns, 0.0 tools, T s a rollout
      against  small, DATE: +0.125 [-0.215, 0.471]; of 8 tasks 1 better, 0 worse
      "
    `)
    for (const line of `${report(small.stdout)}${report(large.stdout)}`.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    const names = (await readdir(join(folder, 'runs'))).sort()
    const compared = await evaluate('compare', names[0]!, names[1]!)
    expect(report(compared.stdout)).toMatchInlineSnapshot(`
      "agent with small at HOST, which answers as small-2026
      against  large, DATE: -0.125 [-0.471, 0.215]; of 8 tasks 0 better, 1 worse
               (test-8-bf9a6c: 1.00 to 0.00)
      "
    `)
  })

  it('runs what failed once more, and scores its episodes with another reward', async () => {
    refused.add('3+3')
    const first = await evaluate(...setup(), '--model', `${url}#large`)
    expect(first.code).toBe(1)
    expect(first.stdout).toMatch(/failed {3}1 of 8: FROZEN_MODEL_FAILED/)
    expect(first.stdout.replaceAll(/\s+/g, ' ')).toContain('7 of 8 scored, 0.875 to 1.000 with the rest')
    expect(first.stderr).toMatch(/1 of 8 rollouts failed \(12\.5 %\), and 2 % may/)
    refused.clear()
    const calls = asked.length
    const again = await evaluate('--again', 'failed')
    expect(again.code, again.stderr).toBe(0)
    expect(asked.slice(calls)).toEqual(['3+3'])
    expect(again.stdout).toContain('reward   1.000')
    const rescored = await evaluate('--rescore', './even.ts')
    expect(rescored.code, rescored.stderr).toBe(0)
    expect(asked).toHaveLength(calls + 1)
    expect(rescored.stdout).toMatch(/against {2}large, .*: 0\.000/)
    expect(rescored.stdout).toContain('Beside the model, the reward differs.')
  })

  it('runs two models in one command and compares them, as JSON', async () => {
    const { code, stdout, stderr } = await evaluate(...setup(), '--model', `${url}#large`, '--model', `${url}#small`, '--new', '--json')
    expect(code, stderr).toBe(0)
    const ends = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ type }) => type === 'evaluation-end')
    expect(ends.map(({ metrics }) => metrics.reward)).toEqual([1, 0.875])
    const newest = (await readdir(join(folder, 'runs'))).sort().at(-1)!
    const written = JSON.parse(await readFile(join(folder, 'runs', newest, 'report.json'), 'utf8'))
    expect(written.comparison).toMatchObject({ difference: { value: -0.125 }, worse: 1 })
  })

  it.each([
    ['no agent', [], 2, /There is no agent: name one/],
    [
      'a model that a server with a list does not name',
      ['./agent.ts', '--data', 'sums.csv', '--model', 'URL'],
      2,
      /names no model, and the server has "small", "large"/,
    ],
    [
      'a price that is none',
      [...['./agent.ts', '--data', 'sums.csv', '--model', 'URL#small'], '--price', 'cheap'],
      2,
      /--price cheap is no price/,
    ],
    ['a comparison with nothing', ['compare', 'last'], 2, /Two evaluations are compared/],
    ['both at once', ['--again', 'failed', '--rescore', './even.ts'], 2, /exclude each other/],
    ['flags beside --again', ['--again', 'failed', '--data', 'sums.csv', '--new'], 2, /--data, --new has no effect beside --again/],
    [
      'a cassette of two models',
      ['./agent.ts', '--data', 'sums.csv', '--model', 'URL#small', '--model', 'URL#large', '--cassette', 'c.jsonl'],
      2,
      /answers of one model/,
    ],
    ['words behind the agent', ['./agent.ts', 'other.ts'], 2, /"other.ts" stands behind the agent/],
    ['another thing again', ['--again', 'everything'], 2, /expected "failed"/],
  ])('refuses %s', async (_what, args, code, message) => {
    const result = await evaluate(...args.map((arg) => arg.replace('URL', url)))
    expect(result.stderr).toMatch(message)
    expect(result.code).toBe(code)
  })
})
