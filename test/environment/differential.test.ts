import { availableParallelism } from 'node:os'
import type { Sandbox } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { differences } from '../../packages/tools/src/sandbox/simulated/differences.ts'
import { everydayCommands } from './everyday-commands.ts'

const signal = new AbortController().signal
let sandboxes: readonly [real: Sandbox, simulated: Sandbox]
beforeAll(async () => {
  sandboxes = [await openSandbox({ tier: 'bubblewrap' }), await openSandbox({ tier: 'simulated' })]
})
afterAll(async () => {
  for (const sandbox of sandboxes) await sandbox.close()
})

interface Answer {
  readonly exitCode: number
  readonly output: string
}

async function answer(sandbox: Sandbox, command: string): Promise<Answer> {
  const workspace = await sandbox.workspace({}, signal)
  try {
    const { exitCode, output } = await (await workspace.shell(signal)).execute(command, 60_000, signal)
    // Only a real bash counts lines.
    return { exitCode, output: output.replaceAll(/^bash: line \d+: /gm, 'bash: ') }
  } finally {
    await workspace.close()
  }
}

const isMissing = ({ output }: Answer) => /^bash: (?!nothing-of-that-name)\S+: command not found$/m.test(output)
/** The simulation names a program or a mistake of its own. */
const saysWhy = ({ output }: Answer, real: Answer) =>
  output.split('\n').some((line) => !real.output.includes(line) && /^(?:[\w-]+: .|a number beyond|usage: |Traceback|at <eval>)/.test(line))

test('everyday commands answer alike on both tiers, and where they do not the table says how', { timeout: 900_000 }, async () => {
  const rows = [
    ...Object.entries(everydayCommands).map(([name, command]) => ({ name, command, expected: 'alike' })),
    ...differences.flatMap(({ answer, examples }) => examples.map((command) => ({ name: command, command, expected: answer }))),
  ]
  const untrue: object[] = []
  let compared = 0
  const compare = async () => {
    for (let row = rows.shift(); row; row = rows.shift()) {
      const [real, simulated] = [await answer(sandboxes[0], row.command), await answer(sandboxes[1], row.command)]
      // What this machine has not installed cannot be compared.
      if (isMissing(real)) continue
      compared += 1
      const isAlike = real.exitCode === simulated.exitCode && real.output === simulated.output
      const found = isAlike ? 'alike' : saysWhy(simulated, real) ? 'error' : 'differs'
      if (found !== row.expected) untrue.push({ ...row, found, real, simulated })
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, compare))
  expect(untrue).toEqual([])
  expect(compared).toBeGreaterThan(120)
})
