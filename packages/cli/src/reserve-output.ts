import { ChildProcess, type StdioOptions } from 'node:child_process'

/** The method by which Node starts every program that it does not wait for. Its types leave it out. */
interface ProgramStart {
  spawn(options: { readonly stdio?: StdioOptions }): unknown
}

/**
 * Reserves standard output for the lines of this program. Everything else that writes there, such as `console.log` of an agent or a program
 * that inherits it, writes to standard error instead.
 */
export function reserveOutput({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'>): NodeJS.WriteStream {
  const write = stdout.write.bind(stdout)
  stdout.write = (...parameters: unknown[]) => {
    stderr.write(...(parameters as [string]))
    // A stream that is piped here would wait for a `drain` of standard output, which never comes.
    return true
  }
  const start = ChildProcess.prototype as unknown as ProgramStart
  const { spawn } = start
  start.spawn = function (options) {
    return spawn.call(this, { ...options, ...(options.stdio !== undefined && { stdio: withoutOutput(options.stdio) }) })
  }
  return Object.create(stdout, { write: { value: write } }) as NodeJS.WriteStream
}

/** The streams of a program, with standard error in place of an inherited standard output. */
function withoutOutput(stdio: StdioOptions): StdioOptions {
  if (stdio === 'inherit') return ['inherit', 2, 'inherit']
  if (typeof stdio === 'string') return stdio
  return stdio.map((stream, index) => (stream === 1 || stream === process.stdout || (stream === 'inherit' && index === 1) ? 2 : stream))
}
