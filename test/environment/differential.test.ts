import { availableParallelism } from 'node:os'
import type { Sandbox } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { everydayCommands, saidDifferences, silentDifferences } from './everyday-commands.ts'

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
  output.split('\n').some((line) => !real.output.includes(line) && /^(?:[\w-]+: .|usage: |Traceback|at <eval>)/.test(line))

test('everyday commands answer alike on both tiers, and where they do not it is known', { timeout: 900_000 }, async () => {
  const found = { said: [] as string[], silent: [] as string[], uncompared: [] as string[] }
  const commands = Object.entries(everydayCommands)
  const compare = async () => {
    for (let next = commands.shift(); next; next = commands.shift()) {
      const [name, command] = next
      const [real, simulated] = [await answer(sandboxes[0], command), await answer(sandboxes[1], command)]
      // What this machine has not installed cannot be compared.
      if (isMissing(real)) found.uncompared.push(name)
      else if (real.exitCode === simulated.exitCode && real.output === simulated.output) continue
      else found[saysWhy(simulated, real) ? 'said' : 'silent'].push(name)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, compare))
  const compared = (names: readonly string[]) => names.filter((name) => !found.uncompared.includes(name)).sort()
  expect({ said: found.said.sort(), silent: found.silent.sort() }).toEqual({
    said: compared(saidDifferences),
    silent: compared(Object.keys(silentDifferences)),
  })
})
