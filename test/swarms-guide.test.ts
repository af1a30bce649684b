import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { createRunners, loadAgentsFromObject } from '@aworld-train/agent'
import * as aworldTrain from 'aworld-train'
import { beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { withModelServer } from './parity/parity-context.ts'
import { repository } from './support/run-cli.ts'

let page: string
beforeAll(async () => {
  page = await readFile(join(repository, 'docs/3.guides/swarms.md'), 'utf8')
})

const blocks = (language: string) => [...page.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, code]) => code!)

/** What the code of the page exports. */
function exportsOfPage(): Record<string, aworldTrain.Swarm> {
  const code = stripTypeScriptTypes(
    blocks('ts')
      .join('\n')
      .replace(/^import .*$/gm, '')
      .replace(/^export /gm, ''),
  )
  const names = [...page.matchAll(/^export const (\w+)/gm)].map(([, name]) => name)
  return new Function(...Object.keys(aworldTrain), `${code}; return { ${names} }`)(...Object.values(aworldTrain))
}

it('runs every form of the guide', async () => {
  await withModelServer(async ({ baseUrl }) => {
    const runners = createRunners({ policy: { baseUrl, apiKey: 'k', model: 'm' } })
    const answers = Object.entries(exportsOfPage()).map(async ([name, swarm]) => [name, (await runners.run('q', swarm)).answer])
    const joined = 're: {"searcher":"re: re: q","coder":"re: re: q"}'
    expect(Object.fromEntries(await Promise.all(answers))).toEqual({
      workflow: joined,
      edges: joined,
      team: 're: q',
      handoff: 're: q',
      loop: `${'re: '.repeat(7)}q`,
    })
    const { source } = loadAgentsFromObject(parse(blocks('yaml')[0]!), { environment: {} })
    expect((await runners.run('q', source)).answer).toBe(joined)
  })
})

it('rewards an agent of its own as the guide says', async () => {
  const code = blocks('js')[0]!.replace('export default', 'return')
  const reward = new Function('defineReward', code)(aworldTrain.defineReward)
  const calls = [
    { agent: 'searcher', isError: false },
    { agent: 'searcher', isError: true },
    { agent: 'coder', isError: false },
  ]
  const input = { episode: { answer: 'a', toolCalls: calls }, answer: { groundTruth: 'a' } }
  expect(reward.score(input)).toEqual({ reward: 1, agents: { searcher: 0.5 } })
})
