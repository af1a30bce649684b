import { ChildProcess, type StdioOptions } from 'node:child_process'

/** By this method, which its types leave out, Node starts every program that it does not wait for. */
interface ProgramStart {
  spawn(options: { readonly stdio?: StdioOptions }): unknown
}

/**
 * Standard output for the lines of this program alone: whatever else writes there from now on, such as `console.log` of an agent or a
 * program that inherits it, writes to standard error.
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

/** The same streams of a program, with standard error in the place of a standard output that it would inherit. */
function withoutOutput(stdio: StdioOptions): StdioOptions {
  if (stdio === 'inherit') return ['inherit', 2, 'inherit']
  if (typeof stdio === 'string') return stdio
  return stdio.map((stream, index) => (stream === 1 || stream === process.stdout || (stream === 'inherit' && index === 1) ? 2 : stream))
}
