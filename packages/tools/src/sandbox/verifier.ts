import { posix } from 'node:path'
import {
  type CommandResult,
  type Sandbox,
  ToolError,
  TrainError,
  type Verifier,
  type VerifyRequest,
  type WorkspaceFile,
} from '@aworld-train/core'
import { type OpenSandboxOptions, openSandbox } from './open-sandbox.ts'

const defaultTimeoutMs = 60_000

/** Opens the place where rewards check files. Rejects with SANDBOX_UNAVAILABLE. */
export async function openVerifier(options: OpenSandboxOptions = {}): Promise<Verifier> {
  const sandbox = await openSandbox(options)
  return { verify: (request, signal) => verify(sandbox, request, signal), close: () => sandbox.close() }
}

async function verify(sandbox: Sandbox, request: VerifyRequest, signal: AbortSignal): Promise<CommandResult> {
  const { files = [], own = {}, command, stdin, timeoutMs = defaultTimeoutMs } = request
  const [program] = command
  const cannot = (why: string, cause?: unknown) =>
    new TrainError('REWARD_FAILED', `The reward cannot verify with "${program}": ${why}.`, { cause })
  const workspace = await sandbox.workspace({ limits: { cpuSeconds: Math.ceil(timeoutMs / 1_000) } }, signal)
  try {
    await workspace.putAll(beside(files, ownFiles(own)), signal)
    const look = { command: ['bash', '-c', 'type -P -- "$0"', program], timeoutMs: defaultTimeoutMs, readOnly: true } as const
    if ((await workspace.run(look, signal)).exitCode !== 0) throw cannot(missing(sandbox))
    return await workspace.run({ command, stdin, timeoutMs, readOnly: true }, signal)
  } catch (cause) {
    if (cause instanceof ToolError) throw cannot(cause.message.replace(/\.$/, ''), cause)
    throw cause
  } finally {
    await workspace.close()
  }
}

const missing = ({ tier, notices }: Sandbox): string =>
  tier === 'bubblewrap'
    ? 'it is no program of the sandbox, which has those below /usr; install it there, or name a file of the request by its path'
    : `it is no program of the simulated sandbox, which has bash, python3 and node. ${notices.join(' ').replace(/\.$/, '')}`

function ownFiles(own: NonNullable<VerifyRequest['own']>): WorkspaceFile[] {
  return Object.entries(own).map(([path, content]) => {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    return { path: posix.normalize(path), executable: isScript(bytes), bytes }
  })
}

/** Whether a file names its interpreter in its first line. */
const isScript = (bytes: Uint8Array) => bytes[0] === 0x23 && bytes[1] === 0x21

/** The files of the reward, and those of the rollout that are not in their way. */
function beside(files: readonly WorkspaceFile[], own: readonly WorkspaceFile[]): WorkspaceFile[] {
  const isInTheWay = ({ path }: WorkspaceFile) => own.some((each) => isAt(path, each.path) || isAt(each.path, path))
  return [...files.filter((file) => !isInTheWay(file)), ...own]
}

/** Whether a path is that of a file, or below it. */
const isAt = (path: string, file: string) => `${posix.normalize(path)}/`.startsWith(`${file}/`)
