import { randomBytes } from 'node:crypto'
import { type SandboxTier, type Shell, ToolError, TrainError } from '@aworld-train/core'
import type { Lease } from './lease.ts'

/** How long a copy waits for the commands that run in shells. */
const commandMs = 10_000

const background = 'What runs in the background was paused while the files were copied, and runs in the first workspace alone.'
const simulatedShells = 'In the simulated tier shells begin in /workspace, without the variables of those of the first workspace.'

/** Sentences about what a copy in this tier lacks. */
export const notCopied = (tier: SandboxTier): readonly string[] => (tier === 'simulated' ? [background, simulatedShells] : [background])

/**
 * Writes the folder and the variables of a bash to a file, as commands. The last `printf` fails if there was no room, which `declare` does not
 * report. Names that bash lets nobody set are refused when the commands are run.
 */
const saveScript = (path: string) => `{ builtin printf 'builtin cd -- %q\\n' "$PWD"; builtin declare -p; builtin printf "\\n"; } > ${path}`
const restoreScript = (path: string) => `builtin source ${path} > /dev/null 2>&1; command rm -f ${path}`

/**
 * Gives a lease the files of another one, and the state of its shells. Rejects with LEASE_CONFLICT if a command goes on in one of these for
 * too long, with a ToolError if there is no room for the files, and with TOOL_SERVER_DIED.
 */
export async function copyLease(source: Lease, target: Lease, tier: SandboxTier): Promise<void> {
  const signal = AbortSignal.any([source.signal, target.signal])
  const [from, to] = await Promise.all([source.workspace(), target.workspace()])
  const states = new Map<string, string>()
  const shells = tier === 'simulated' ? new Map<string, Shell>() : await source.shells.all()
  try {
    for (const [session, shell] of shells) {
      const path = `/tmp/.shell-${randomBytes(8).toString('hex')}`
      states.set(session, path)
      if ((await execute(shell, saveScript(path), signal, source)) !== 0)
        throw new ToolError('The state of a shell could not be kept; the workspace may be full. Remove files first.')
    }
    await to.unpack((input) => from.pack(input, signal), signal)
  } finally {
    for (const [session, path] of states) await execute(shells.get(session)!, `command rm -f ${path}`, signal, source).catch(() => {})
  }
  target.shells.beginWith((session) => {
    const path = findState(states, session)
    return path === undefined ? null : restoreScript(path)
  })
}

async function execute(shell: Shell, script: string, signal: AbortSignal, { rollout }: Lease): Promise<number> {
  const late = AbortSignal.timeout(commandMs)
  const { exitCode } = await shell.execute(script, commandMs, AbortSignal.any([signal, late])).catch((cause: unknown) => {
    if (!late.aborted || signal.aborted) throw cause
    throw new TrainError('LEASE_CONFLICT', `A command runs in a shell of rollout "${rollout}"; copy its workspace when that has ended.`, {
      cause,
    })
  })
  return exitCode
}

/** The state for a shell: that of the same agent, whose name ends the name of its session, or that of the only shell. */
function findState(states: ReadonlyMap<string, string>, session: string): string | undefined {
  const agentOf = (name: string) => name.slice(name.lastIndexOf('.') + 1)
  const found = [...states].find(([name]) => agentOf(name) === agentOf(session))
  return found?.[1] ?? (states.size === 1 ? [...states.values()][0] : undefined)
}
