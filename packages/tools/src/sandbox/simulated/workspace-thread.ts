import { parentPort } from 'node:worker_threads'
import { errorMessage, ToolError, TrainError } from '@aworld-train/core'
import { quote } from '../quote.ts'
import { createBash } from './bash.ts'
import type { CommandOutcome, WorkspaceMessage, WorkspaceReply, WorkspaceRequest, WorkspaceThreadData } from './messages.ts'
import { ShellSession } from './shell-session.ts'
import { createStopSignal } from './stop-signal.ts'
import { WorkspaceFiles } from './workspace-files.ts'

// The locale of the thread is C, as in jails: programs of the simulation sort by this function.
String.prototype.localeCompare = function (other) {
  return Buffer.compare(Buffer.from(String(this)), Buffer.from(other))
}

/** A workspace in a thread of its own. A loop in its simulated bash blocks nobody else, and its memory is limited. */
let files: WorkspaceFiles
const shells = new Map<number, ShellSession>()
/** Functions that wake running commands, by the id of their request. */
const wakes = new Map<number, () => void>()

parentPort!.on('message', (message: WorkspaceMessage) => {
  if ('begin' in message) begin(message.begin)
  else if ('stopped' in message) wakes.get(message.id)?.()
  else void answer(message.id, message.request)
})

function begin(limits: WorkspaceThreadData): void {
  for (const shell of shells.values()) shell.close()
  shells.clear()
  files = new WorkspaceFiles(limits)
}

async function answer(id: number, request: WorkspaceRequest): Promise<void> {
  const reply = (message: WorkspaceReply) => parentPort!.postMessage(message)
  try {
    reply({ id, value: await perform(id, request) })
  } catch (error) {
    const code = error instanceof TrainError ? error.code : null
    reply({ id, error: { isToolError: error instanceof ToolError, code, message: errorMessage(error) } })
  } finally {
    wakes.delete(id)
  }
}

async function perform(id: number, request: WorkspaceRequest): Promise<unknown> {
  switch (request.kind) {
    case 'put':
      return files.put(request.path, request.bytes)
    case 'get':
      return files.get(request.path, request.maxBytes)
    case 'put-all':
      for (const { path, bytes, executable } of request.files) await files.put(path, bytes, executable)
      return
    case 'collect':
      return files.collect(request.patterns)
    case 'pack':
      return files.pack()
    case 'unpack':
      return files.unpack(request.entries)
    case 'run':
      return run(id, request)
    case 'execute': {
      const shell = shells.get(request.shell) ?? new ShellSession(files)
      shells.set(request.shell, shell)
      wakes.set(id, () => shell.wake())
      return shell.execute(request.command, request.stop)
    }
    case 'close-shell':
      shells.get(request.shell)?.close()
      shells.delete(request.shell)
  }
}

async function run(id: number, { command, stdin, readOnly, stop }: WorkspaceRequest & { kind: 'run' }): Promise<CommandOutcome> {
  const { path, output } = files.openOutput(() => stop)
  const { signal, wake } = createStopSignal(() => stop)
  wakes.set(id, wake)
  files.isReadOnly = readOnly
  try {
    const script = `${command.map(quote).join(' ')} >>${path} 2>&1`
    const { exitCode } = await createBash(files).exec(script, { rawScript: true, stdin, signal })
    return { exitCode, ...output.take() }
  } finally {
    files.isReadOnly = false
    files.closeOutput(path)
  }
}
