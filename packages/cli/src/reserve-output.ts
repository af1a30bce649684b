/** Standard output for the lines of this program alone: whatever else writes there from now on, such as `console.log` of an agent, writes to standard error. */
export function reserveOutput({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'>): NodeJS.WriteStream {
  const write = stdout.write.bind(stdout)
  stdout.write = (...parameters: unknown[]) => {
    stderr.write(...(parameters as [string]))
    // A stream that is piped here would wait for a `drain` of standard output, which never comes.
    return true
  }
  return Object.create(stdout, { write: { value: write } }) as NodeJS.WriteStream
}
