/** The folder of these packages: in a clone that of their sources, installed the one in node_modules. */
const ownFolder = decodeURIComponent(new URL('../../', import.meta.url).pathname)

const frame = /^\s*at (?:.*\()?(?:async )?(?:file:\/\/)?(\/[^()]*?|[A-Za-z]:[\\/][^()]*?):(\d+):\d+\)?$/

/** The first place in a stack that is in a file of the user: not of Node, of a package that is installed, or of ours. */
export function sourceOfStack(stack: string): string | undefined {
  for (const line of stack.split('\n')) {
    const [, path, row] = frame.exec(line) ?? []
    if (path === undefined) continue
    const file = line.includes('file://') ? decoded(path) : path
    if (!file.includes('node_modules') && !file.startsWith(ownFolder)) return `${file}:${row}`
  }
  return undefined
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
