import { spawn } from 'node:child_process'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { dirname, resolve, sep } from 'node:path'
import { filesByName, type LeaseTask, TrainError } from '@aworld-train/core'
import { childEnvironment } from './child-environment.ts'
import type { ResolvedOptions } from './environment-options.ts'
import { killTree } from './process-guard.ts'

/** Characters of a failed command's last output that are shown. */
const shownOutput = 2_000

/**
 * Puts a task's files and those of its set-up into the directory, then runs the commands of the set-up there, one after the other. Rejects
 * with ENVIRONMENT_START_FAILED, because a rollout without its workspace has no result.
 */
export async function prepareWorkspace(
  { id, files = [], setup = {} }: LeaseTask,
  directory: string,
  options: ResolvedOptions,
  signal: AbortSignal,
): Promise<void> {
  const fail = (what: string, cause?: unknown): never => {
    const reason = cause instanceof Error ? `: ${cause.message}` : ''
    throw new TrainError('ENVIRONMENT_START_FAILED', `The workspace of task "${id}" is not ready: ${what}${reason}.`, {
      cause,
      details: { task: id },
    })
  }
  for (const [name, path] of filesByName(files, fail)) {
    const source = resolve(options.baseDirectory, path)
    await copyFile(source, resolve(directory, name)).catch((cause: unknown) => fail(`its file ${source} cannot be copied`, cause))
  }
  for (const [path, text] of Object.entries(setup.files ?? {})) {
    const target = resolve(directory, path)
    if (!target.startsWith(directory + sep)) fail(`the set-up names the file ${path}, which is outside the workspace`)
    await mkdir(dirname(target), { recursive: true })
      .then(() => writeFile(target, text))
      .catch((cause: unknown) => fail(`the file ${path} of its set-up cannot be written`, cause))
  }
  for (const command of setup.commands ?? []) {
    const { exitCode, output } = await runCommand(command, directory, options, signal)
    signal.throwIfAborted()
    if (exitCode !== 0)
      fail(
        `the command ${JSON.stringify(command)} of its set-up ended with ${exitCode}; it printed:\n${output.slice(-shownOutput).trim()}\n`,
      )
  }
}

/** Runs a command in the shell of the platform. When the signal or the start timeout comes first, it is ended with all that it started. */
async function runCommand(command: string, directory: string, options: ResolvedOptions, signal: AbortSignal) {
  const env = childEnvironment({ AWORLD_TRAIN_DIRECTORY: directory }, options.variables)
  const child = spawn(command, {
    shell: true,
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-2 * shownOutput)
    })
  const end = AbortSignal.any([signal, AbortSignal.timeout(options.startTimeoutMs)])
  const kill = () => child.pid !== undefined && killTree(child.pid, 'SIGKILL')
  end.addEventListener('abort', kill, { once: true })
  try {
    return await new Promise<{ readonly exitCode: string | number; readonly output: string }>((done) => {
      child.once('error', ({ message }) => done({ exitCode: message, output }))
      child.once('close', (code, name) =>
        done({ exitCode: end.aborted ? `no end within ${options.startTimeoutMs / 1_000} s` : (code ?? String(name)), output }),
      )
    })
  } finally {
    end.removeEventListener('abort', kill)
  }
}
