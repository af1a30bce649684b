import { posix } from 'node:path'
import { type CommandContext, type CustomCommand, defineCommand, type ExecResult, latin1FromBytes } from 'just-bash'
import { quote } from '../quote.ts'

type Context = CommandContext & { readonly origCommand?: (args: string[]) => Promise<ExecResult> }
type Correction = (args: readonly string[], context: Context, original: (...args: string[]) => Promise<ExecResult>) => Promise<ExecResult>

/** Programs of the simulation that by themselves answer otherwise than those of a machine, and do not say so. */
const corrections: Readonly<Record<string, Correction>> = {
  /** Of several files, the simulation prints empty lines between their names. */
  async ls(args, { fs, cwd }, original) {
    const options = args.filter(isOption)
    const operands = args.filter((each) => !isOption(each))
    if (operands.length < 2 || options.some((each) => /^--|[tSrU]/.test(each))) return original(...args)
    const folders: string[] = []
    const files: string[] = []
    for (const each of [...operands].sort()) {
      const isFolder =
        !options.some((option) => option.includes('d')) &&
        (await fs.stat(posix.resolve(cwd, each)).then(
          (found) => found.isDirectory,
          () => false,
        ))
      ;(isFolder ? folders : files).push(each)
    }
    if (files.length === 0) return original(...args)
    const results: ExecResult[] = []
    for (const each of files) results.push(await original(...options, each))
    for (const [index, each] of folders.entries()) {
      const result = await original(...options, each)
      const isFirst = index === 0 && results.every(({ stdout }) => stdout === '')
      results.push({ ...result, stdout: `${isFirst ? '' : '\n'}${each}:\n${result.stdout}` })
    }
    return {
      stdout: results.map(({ stdout }) => stdout).join(''),
      stderr: results.map(({ stderr }) => stderr).join(''),
      exitCode: Math.max(...results.map(({ exitCode }) => exitCode)),
    }
  },

  /** `grep -r x .` names files as ./file, and `grep -r x` searches the folder. */
  async grep(args, _, original) {
    const operands = args.filter((each) => !isOption(each))
    const has = (letters: RegExp, name: string) =>
      args.some((each) => (each.startsWith('--') ? each === name : isOption(each) && letters.test(each)))
    if (!has(/[rR]/, '--recursive') || has(/[efmABC]/, '--regexp')) return original(...args)
    if (operands.length === 1) return original(...args, '.')
    const result = await original(...args)
    if (operands.length !== 2 || operands[1] !== '.' || has(/h/, '--no-filename') || has(/q/, '--quiet')) return result
    return { ...result, stdout: result.stdout.replaceAll(/^(?!--$)(?=.)/gm, './') }
  },

  /** The simulation runs no command after -i and -u. */
  async env(args, context, original) {
    if (!/^-[iu]|^-$/.test(args[0] ?? '')) return original(...args)
    let variables: Record<string, string> = { ...context.exportedEnv }
    let at = 0
    for (; at < args.length; at++) {
      const each = args[at]!
      const assignment = /^([^=]+)=(.*)$/s.exec(each)
      if (each === '-i' || each === '-') variables = {}
      else if (each === '-u') delete variables[args[++at] ?? '']
      else if (assignment) variables[assignment[1]!] = assignment[2]!
      else break
    }
    const [command, ...rest] = args.slice(at)
    if (command?.startsWith('-')) return original(...args)
    if (command === undefined)
      return {
        stdout: Object.entries(variables)
          .map(([name, value]) => `${name}=${value}\n`)
          .join(''),
        stderr: '',
        exitCode: 0,
      }
    const { cwd, stdin, signal } = context
    const exported = Object.entries(variables).filter(([name]) => /^[A-Za-z_]\w*$/.test(name))
    const script = [...exported.map(([name, value]) => `export ${name}=${quote(value)}`), [command, ...rest].map(quote).join(' ')].join(
      '\n',
    )
    const options = { cwd, env: { PATH: '/usr/bin:/bin' }, replaceEnv: true, stdin: latin1FromBytes(stdin), stdinKind: 'bytes' as const }
    return context.exec!(script, { ...options, ...(signal && { signal }) })
  },

  /** Numbers are floating point. */
  async printf(args, _, original) {
    const [format = ''] = args
    return /%[-+ 0#]*\d*(?:\.\d+)?[diouxX]/.test(format) ? withinBound('printf', args.slice(1), () => original(...args)) : original(...args)
  },
  expr: (args, _, original) => withinBound('expr', args, () => original(...args)),

  /** The simulation takes -i.bak for -i. */
  async sed(args, _, original) {
    const copies = args.some((each) => /^-i./.test(each) || /^--in-place=/.test(each))
    return copies ? refused('sed: a copy beside -i is not simulated. Use cp before.') : original(...args)
  },

  async od(args, _, original) {
    const others = args.some((each) => /^-[a-z]*[txdfsi]/.test(each) || each.startsWith('--'))
    return others ? refused('od: only octal bytes and -c are simulated. Use python3.') : original(...args)
  },

  /** The simulation splits at lines only, and takes an array for a text of no length. */
  async awk(args, _, original) {
    const program = args.find((each, index) => !isOption(each) && !/^-[Fv]$/.test(args[index - 1] ?? '')) ?? ''
    if (/\bRS\s*=(?!=|\s*"\\n")/.test(program) || args.some((each) => /^(?:-v)?RS=/.test(each)))
      return refused('awk: another RS than a line is not simulated. Use tr or python3.')
    const arrays = new Set(
      [...program.matchAll(/(\w+)\[|\bin\s+(\w+)|split\([^,]+,\s*(\w+)/g)].map((each) => each[1] ?? each[2] ?? each[3]),
    )
    for (const [, name] of program.matchAll(/\blength\(\s*(\w+)\s*\)/g))
      if (arrays.has(name)) return refused(`awk: the length of the array "${name}" is not simulated. Count in a variable.`)
    if (/\blength\b(?!\s*\()/.test(program)) return refused('awk: length without brackets is not simulated. Use length($0).')
    return original(...args)
  },
}

export const correctedCommands: readonly CustomCommand[] = Object.entries(corrections).map(([name, correct]) =>
  defineCommand(name, (args, context: Context) => correct(args, context, (...others) => context.origCommand!(others))),
)

const isOption = (argument: string) => /^-./.test(argument)

const refused = (message: string): ExecResult => ({ stdout: '', stderr: `${message}\n`, exitCode: 2 })

/** Refuses numbers beyond 2^53, in arguments and in what is printed of them. */
async function withinBound(name: string, args: readonly string[], run: () => Promise<ExecResult>): Promise<ExecResult> {
  const isBeyond = (text: string) => /^[-+]?\d{16,}$/.test(text) && !Number.isSafeInteger(Number(text))
  const result = args.some(isBeyond) ? null : await run()
  const refusal = refused(`${name}: a number beyond 2^53, which the simulation does not compute; use python3`)
  return result === null || (name === 'expr' && (isBeyond(result.stdout.trim()) || /^-?\d\.\d+e\+\d+\n$/.test(result.stdout)))
    ? refusal
    : result
}
