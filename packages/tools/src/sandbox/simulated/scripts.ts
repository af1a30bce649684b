import { posix } from 'node:path'
import { type CommandContext, type CustomCommand, decodeBytesToUtf8, defineCommand, type ExecResult, latin1FromBytes } from 'just-bash'
import { markArithmetic } from './read-script.ts'

type Context = CommandContext & { readonly origCommand?: (args: string[]) => Promise<ExecResult> }

/** `bash` and `sh`, which the simulation knows without options other than `-c`. */
const shells = ['bash', 'sh'].map((name) => defineCommand(name, (args, context) => runShell(name, args, context)))

/** Runs a file that is named by its path. */
const run = defineCommand('__run', async ([path = '', ...args], context) => {
  const { fs, cwd, exportedEnv, stdin, signal } = context
  const place = posix.resolve(cwd, path)
  if (!(await fs.exists(place))) return failed(`${path}: No such file or directory`, 127)
  const isProgram = /^\/(?:usr\/)?bin\/[^/]+$/.test(place)
  const { isDirectory, mode } = await fs.stat(place)
  if (isDirectory) return failed(`${path}: Is a directory`, 126)
  if (!isProgram && (mode & 0o111) === 0) return failed(`${path}: Permission denied`, 126)
  const interpreter = /^#!\s*(?:\/usr\/bin\/env\s+)?(?:\S*\/)?(\S+)/.exec(await fs.readFile(place))?.[1] ?? 'bash'
  const command = isProgram ? [posix.basename(place)] : [interpreter, path]
  const options = { cwd, env: { ...exportedEnv }, stdin: latin1FromBytes(stdin), stdinKind: 'bytes' as const, ...(signal && { signal }) }
  return context.exec!(command[0]!, { ...options, args: [...command.slice(1), ...args] })
})

export const scriptCommands: readonly CustomCommand[] = [...shells, run]

async function runShell(name: string, args: readonly string[], context: Context): Promise<ExecResult> {
  const options: string[] = []
  let inline = false
  let at = 0
  for (; /^[-+]./.test(args[at] ?? ''); at++) {
    const option = args[at]!
    if (option === '--') {
      at++
      break
    }
    if (option.startsWith('--')) return context.origCommand!([...args])
    inline ||= option.startsWith('-') && option.includes('c')
    const letters = option.slice(1).replaceAll(/[cil]/g, '')
    if (letters === 'o') options.push(`set ${option[0]}o ${args[++at]}`)
    else if (letters !== '') options.push(`set ${option[0]}${letters}`)
  }
  const [first, ...rest] = args.slice(at)
  const zero = inline ? (rest.shift() ?? name) : (first ?? name)
  let text = first
  if (first === undefined) {
    if (inline) return failed(`${name}: -c: option requires an argument`, 2)
    text = decodeBytesToUtf8(context.stdin)
  } else if (!inline) {
    const place = posix.resolve(context.cwd, first)
    if (!(await context.fs.exists(place))) return failed(`${first}: No such file or directory`, 127, name)
    text = await context.fs.readFile(place)
  }
  return context.origCommand!(['-c', [...options, markArithmetic(text!)].join('\n'), zero, ...rest])
}

const failed = (message: string, exitCode: number, name = 'bash'): ExecResult => ({
  stdout: '',
  stderr: `${message.startsWith(`${name}:`) ? '' : `${name}: `}${message}\n`,
  exitCode,
})
