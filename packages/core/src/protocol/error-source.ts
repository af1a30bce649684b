/** The folder of these packages: their sources in a clone, node_modules in an installation. */
const ownFolder = decodeURIComponent(new URL('../../../', import.meta.url).pathname)

const frame = /^\s*at (?:.*\()?(?:async )?(?:file:\/\/)?(\/[^()]*?|[A-Za-z]:[\\/][^()]*?):(\d+):\d+\)?$/

const pythonFrame = /^\s*File "([^"<]+)", line (\d+)/

const isInstalled = (file: string) => /[\\/](?:node_modules|site-packages)[\\/]/.test(file) || file.startsWith(ownFolder)

/**
 * The innermost place in a stack, of JavaScript or Python, that is in a user's file, rather than in one of Node, of an installed package,
 * or of ours.
 */
export function sourceOfStack(stack: string): string | undefined {
  const lines = stack.split('\n')
  for (const line of lines) {
    const [, path, row] = frame.exec(line) ?? []
    if (path === undefined) continue
    const file = line.includes('file://') ? decoded(path) : path
    if (!isInstalled(file)) return `${file}:${row}`
  }
  // Python names the innermost call last.
  const [, file, row] = lines.map((line) => pythonFrame.exec(line)).findLast((found) => found && !isInstalled(found[1]!)) ?? []
  return file === undefined ? undefined : `${file}:${row}`
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
