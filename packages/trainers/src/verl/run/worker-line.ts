/** A line of the console without Ray's `(Actor pid=123) ` or `(Actor pid=123, ip=…) ` before it. */
export function withoutActor(line: string): string {
  return line.replace(/^\([^()]*\bpid=\d+[^()]*\)\s?/, '')
}
