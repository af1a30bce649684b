import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** A child process. Disposing of it kills it. */
export interface Child extends AsyncDisposable {
  readonly process: ChildProcess
  /** Lines of standard output so far. */
  readonly lines: readonly string[]
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly stderr: string }>
  line(test: (line: string) => boolean): Promise<string>
}

export interface ChildOptions {
  /** Largest file the child may write, in blocks of 512 bytes. */
  readonly fileBlocks?: number | undefined
  readonly uid?: number | undefined
}

/** Runs `store-worker.ts` in a process of its own. */
export function storeWorker(args: readonly string[], options: ChildOptions = {}): Child {
  return childProcess([fileURLToPath(new URL('./store-worker.ts', import.meta.url)), ...args], options)
}

/** Runs a TypeScript file, with its arguments, in a process of its own. */
export function childProcess(scriptAndArgs: readonly string[], { fileBlocks, uid }: ChildOptions = {}): Child {
  const command = [process.execPath, '--no-warnings', ...scriptAndArgs]
  const [file, ...rest] = fileBlocks === undefined ? command : ['sh', '-c', `ulimit -f ${fileBlocks}; exec "$@"`, 'sh', ...command]
  const child = spawn(file!, rest, { stdio: ['ignore', 'pipe', 'pipe'], ...(uid !== undefined && { uid, gid: uid }) })
  const lines: string[] = []
  let stderr = ''
  let waiting: (() => void)[] = []
  const wake = () => {
    const all = waiting
    waiting = []
    for (const resume of all) resume()
  }
  const output = createInterface({ input: child.stdout! })
  output.on('line', (line) => {
    lines.push(line)
    wake()
  })
  child.stderr!.on('data', (data: Buffer) => {
    stderr += data.toString()
  })
  const exited = new Promise<Awaited<Child['exited']>>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      resolve({ code, signal, stderr })
      wake()
    })
  })
  return {
    process: child,
    lines,
    exited,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
    async line(test) {
      for (;;) {
        const found = lines.find(test)
        if (found !== undefined) return found
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`The worker ended: ${stderr}`)
        await new Promise<void>((resolve) => waiting.push(resolve))
      }
    },
  }
}
