import { errorMessage } from '@aworld-train/core'
import type { TierProbe } from '../tier.ts'
import { openBubblewrapSandbox } from './bubblewrap-sandbox.ts'
import { architectures } from './seccomp-filter.ts'

const probeTimeoutMs = 20_000

/** Runs a command in a jail. If that fails, the reason says what a person can do. */
export async function probeBubblewrap(): Promise<TierProbe> {
  if (process.platform !== 'linux') return { ok: false, reason: `bubblewrap runs on Linux only, and this is ${process.platform}.` }
  if (!architectures[process.arch]) return { ok: false, reason: `There is no filter of system calls for the architecture ${process.arch}.` }
  try {
    const signal = AbortSignal.timeout(probeTimeoutMs)
    const sandbox = await openBubblewrapSandbox()
    try {
      const workspace = await sandbox.workspace({}, signal)
      const { exitCode, output } = await workspace.run({ command: ['bash', '-c', 'echo ready'], timeoutMs: probeTimeoutMs }, signal)
      return output === 'ready\n' ? { ok: true } : { ok: false, reason: `A command in a jail ended with exit code ${exitCode}: ${output}` }
    } finally {
      await sandbox.close()
    }
  } catch (error) {
    return { ok: false, reason: bubblewrapFailure(error) }
  }
}

/** Known causes that keep bubblewrap from working, by its messages, with their remedies. */
const remedies: readonly (readonly [symptom: RegExp, remedy: string])[] = [
  [/nsenter/, 'nsenter of util-linux is missing; run: apt-get install util-linux'],
  [/ENOENT|EACCES|bwrap: (?:not found|Permission denied)/, 'bubblewrap is not installed; run: apt-get install bubblewrap'],
  [/Unknown option/, 'This bubblewrap is older than 0.8; install a newer one.'],
  [
    /mount proc/i,
    'This container hides parts of /proc, so a jail cannot have its own; start the container with --security-opt systempaths=unconfined.',
  ],
  [
    /namespace|uid map|Operation not permitted|Permission denied/i,
    'This system lets programs make no user namespaces. On a machine: sysctl -w kernel.unprivileged_userns_clone=1 (Debian), or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu). In a container: start it with --security-opt seccomp=PROFILE, where PROFILE is env/seccomp.json of the repository of aworld-train, or another that allows them.',
  ],
]

/** The reason why bubblewrap does not work here, with a remedy if one is known. */
export function bubblewrapFailure(error: unknown): string {
  const message = errorMessage(error)
  const remedy = remedies.find(([symptom]) => symptom.test(message))?.[1]
  return remedy ? `${remedy} (${message})` : message
}
