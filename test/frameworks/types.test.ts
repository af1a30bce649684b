// @module-tag quick
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** Coding agents. */
const harnesses = ['@anthropic-ai/claude-code', '@openai/codex', 'opencode-linux-x64', '@ai-sdk/harness-pi']

const root = fileURLToPath(new URL('../..', import.meta.url))

test('the agents and these tests have the types of their frameworks', async () => {
  const tsc = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, '-p', 'examples/any-agent'], { cwd: root }).catch(
    (error: { stdout: string }) => error,
  )
  // The packages have a check of their own; here some frameworks bring another version of Node's types.
  expect(stdout.split('\n').filter((line) => /^(examples|test)\//.test(line))).toEqual([])
})

test('the guide shows an agent as it is', async () => {
  const guide = await readFile(join(root, 'docs/3.guides/any-agent.md'), 'utf8')
  expect(guide).toContain((await readFile(join(root, 'examples/any-agent/ai-sdk.ts'), 'utf8')).trimEnd())
})

test('the guide of several agents shows each program as it is', async () => {
  const guide = await readFile(join(root, 'docs/3.guides/several-agents.md'), 'utf8')
  for (const name of ['ai-sdk', 'openai-agents', 'langgraph', 'handoff'])
    expect(guide).toContain((await readFile(join(root, `examples/any-agent/team-${name}.ts`), 'utf8')).trimEnd())
})

test('the guide names the versions that are installed', async () => {
  const guide = await readFile(join(root, 'docs/3.guides/any-agent.md'), 'utf8')
  const { dependencies, optionalDependencies } = JSON.parse(await readFile(join(root, 'examples/any-agent/package.json'), 'utf8'))
  const python = /openai==(.*)/.exec(await readFile(join(root, 'examples/any-agent/requirements.txt'), 'utf8'))?.[1]
  const tested = ['openai', '@anthropic-ai/sdk', 'ai', '@openai/agents', '@mastra/core', '@langchain/langgraph', ...harnesses].map(
    (name) => dependencies[name] ?? optionalDependencies[name],
  )
  expect([...tested, python].filter((version) => !guide.includes(`| ${version} |`))).toEqual([])
})
