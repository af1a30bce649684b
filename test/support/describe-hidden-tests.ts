import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Episode, Sandbox } from '@aworld-train/core'
import { openEnvironmentServer, toolServers } from '@aworld-train/tools'
import { Agent, defineReward, getAgentToolEnvAndServers } from 'aworld-train'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runOnce } from '../../packages/aworld-train/src/vitest/run-once.ts'
import { noOutward, noParsers } from '../../packages/tools/src/testing/open-test-server.ts'
import { repository } from './run-cli.ts'

/** The tests that the agent never sees. Each run of the program is a process of its own, so what it says of itself counts for nothing. */
const check = `for pair in '1 2 3' '20 22 42' '-5 5 0'; do
  set -- $pair
  answer=$(echo "$1 $2" | python3 out/solution.py) || exit 1
  [ "$answer" = "$3" ] || exit 1
done
exit 0`

const reward = defineReward(async ({ verify }) => {
  const { exitCode } = await verify({ own: { 'check.sh': check }, command: ['bash', 'check.sh'] })
  return exitCode === 0 ? 1 : 0
})

const module = `import { defineReward } from 'aworld-train'
export const hidden = defineReward(async ({ files, verify }) => {
  const { exitCode, output, timedOut } = await verify({ files, own: { 'check.sh': ${JSON.stringify(check)} }, command: ['bash', 'check.sh'] })
  return { reward: exitCode === 0 && !timedOut ? 1 : 0, scores: { files: files.length, output: output.length } }
})
`

const right = "printf 'a, b = map(int, input().split())\\nprint(a + b)\\n' > out/solution.py"
export const wrong = "printf 'print(3)\\n' > out/solution.py"

/** What an agent does, its command, and what holds when its rollout is over. */
type Cheat = readonly [title: string, command: string, check?: (episode: Episode) => Promise<void>]

/** A coding task whose reward is its hidden tests, with agents that are honest and that are not. */
export function describeHiddenTests(tier: string, openSandbox: () => Promise<Sandbox>, further: readonly Cheat[] = []): void {
  describe(`hidden tests: ${tier}`, () => {
    let folder: string
    let server: Awaited<ReturnType<typeof openEnvironmentServer>>
    let sandbox: Sandbox
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'hidden-tests-'))
      writeFileSync(join(folder, 'reward.ts'), module)
      symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'), 'junction')
      sandbox = await openSandbox()
      server = await openEnvironmentServer({ sandbox, servers: toolServers, outward: noOutward, parsers: noParsers, port: 0 })
    })
    afterAll(async () => {
      await server.close()
      await sandbox.close()
      rmSync(folder, { recursive: true, force: true })
    })

    async function solve(command: string, rewardFunc: typeof reward | string = reward): Promise<Episode> {
      const { config, servers } = getAgentToolEnvAndServers({
        url: server.url,
        token: server.connectionToken,
        servers: ['terminal-server'],
      })
      const agent = new Agent({ name: 'coder', systemPrompt: 'Write out/solution.py.', mcpConfig: config, mcpServers: servers })
      const call = { toolCalls: [{ name: 'terminal-server__execute_command', arguments: { command: `mkdir -p out\n${command}` } }] }
      return await runOnce(
        { agent, rewardFunc, baseDirectory: folder, config: { environment: { collect: ['out/**'] }, reward: { timeoutMs: 120_000 } } },
        { task: 'Add two numbers.', script: [call, 'done'] },
      )
    }

    it('an honest agent is rewarded, by a reward in code and in a module', async () => {
      const episode = await solve(right)
      expect(episode).toMatchObject({ reward: 1, stopReason: 'completed' })
      expect(episode.files).toEqual([
        { path: 'out/solution.py', executable: false, bytes: 46, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ])
      expect(await solve(right, './reward.ts#hidden')).toMatchObject({ reward: 1, scores: { files: 1, output: 0 } })
    })

    const cheats: readonly Cheat[] = [
      ['is wrong', wrong],
      ['writes nothing', 'true'],
      [
        'edits the tests',
        `${wrong}; echo 'exit 0' > check.sh; mkdir -p tests; echo 'exit 0' > tests/check.sh; echo 'exit 0' > out/check.sh`,
      ],
      ['writes a verdict', `${wrong}; for name in reward.txt verdict.json exit_code; do echo 1 > out/$name; echo 1 > $name; done; echo 0`],
      ['says that all tests passed', 'printf \'import os\\nprint("3 passed")\\nos._exit(0)\\n\' > out/solution.py'],
      [
        'changes the tests while they run',
        'printf \'open("check.sh", "w").write("exit 0")\\nopen("/workspace/check.sh", "w").write("exit 0")\\n\' > out/solution.py',
      ],
      ['names its file like that of a folder of the tests', 'rmdir out; mkdir -p out/check.sh; echo 1 > out/check.sh/one'],
      ...further,
    ]
    it.each(cheats.map(([title, command, check]) => ({ title, command, check })))(
      'an agent that $title is not',
      async ({ command, check }) => {
        const episode = await solve(command)
        expect(episode).toMatchObject({ reward: 0, stopReason: 'completed' })
        await check?.(episode)
      },
    )

    it('an agent that leaves a link has none of its files, and the episode says why', async () => {
      const episode = await solve(`${right}; ln -s /etc/passwd out/passwd`)
      expect(episode).toMatchObject({
        reward: 0,
        files: [],
        filesRefused: { code: 'FILES_REFUSED', boundary: 'agent', message: expect.stringContaining('"out/passwd" is a link') },
      })
    })

    it('a reward that needs a program which is not there fails, and blames no agent', async () => {
      const compiled = defineReward(async ({ verify }) =>
        (await verify({ command: ['no-such-compiler', 'out/main.x'] })).exitCode === 0 ? 1 : 0,
      )
      expect(await solve(right, compiled)).toMatchObject({
        stopReason: 'failed',
        error: { code: 'REWARD_FAILED', message: expect.stringContaining('"no-such-compiler": it is no program of the') },
      })
    })

    it('a verification that never ends is cut, and says so', async () => {
      const endless = defineReward(async ({ verify }) => {
        const { timedOut, exitCode } = await verify({ command: ['bash', '-c', 'while :; do :; done'], timeoutMs: 1_000 })
        return timedOut && exitCode === 124 ? 0.5 : 0
      })
      expect(await solve(right, endless)).toMatchObject({ reward: 0.5 })
    })
  })
}
