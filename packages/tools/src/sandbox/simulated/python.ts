import { posix } from 'node:path'
import { type CommandContext, type CustomCommand, decodeBytesToUtf8, defineCommand } from 'just-bash'

interface PythonProgram {
  readonly source: string
  /** Name in tracebacks. */
  readonly name: string
  readonly kind: 'text' | 'file' | 'input'
  readonly arguments: readonly string[]
}

/** Switches that the simulation does not know and that change nothing in it. */
const switches = /^-[uIBEsSOqb]+$/

/**
 * Python that runs a program as it is written. The simulation's own Python indents it, which changes strings of several lines, and puts
 * four hundred lines before it, which tracebacks count.
 */
export const pythonCommands: readonly CustomCommand[] = ['python3', 'python'].map((name) =>
  defineCommand(name, async (args, context) => {
    const { origCommand } = context as typeof context & { origCommand: (args: string[]) => ReturnType<NonNullable<CommandContext['exec']>> }
    const first = args.findIndex((arg) => !switches.test(arg))
    const operands = first < 0 ? [] : args.slice(first)
    const program = await programOf(operands, context)
    return origCommand(program === null ? operands : ['-c', runner(program), ...program.arguments])
  }),
)

/** The program that arguments name; null if they ask for something else, or for a missing file. */
async function programOf([first, second, ...rest]: readonly string[], { fs, cwd, stdin }: CommandContext): Promise<PythonProgram | null> {
  if (first === '-c' && second !== undefined) return { source: second, name: '<string>', kind: 'text', arguments: rest }
  const others = second === undefined ? rest : [second, ...rest]
  if (first === undefined || first === '-') return { source: decodeBytesToUtf8(stdin), name: '<stdin>', kind: 'input', arguments: others }
  const path = posix.resolve(cwd, first)
  if (first.startsWith('-') || !(await fs.exists(path))) return null
  return { source: await fs.readFile(path), name: first, kind: 'file', arguments: others }
}

// A JSON string is also a Python string on one line. The simulation has the workspace's files below /host.
const runner = ({ source, name, kind }: PythonProgram) => `
def __run(source, name, kind):
    import __main__, io, linecache, os, sys, traceback
    del __main__.__run
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    folder = os.path.dirname(os.path.abspath(name)) if kind == 'file' else os.getcwd()
    sys.path.insert(0, '/host' + folder)
    if kind == 'file':
        __main__.__file__ = sys.argv[0] = name
    if kind == 'input':
        sys.argv[0] = '-'
        sys.stdin = io.StringIO()
    try:
        exec(compile(source, name, 'exec'), __main__.__dict__)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            raise
        print(end.code, file=sys.stderr)
        sys.exit(1)
    except BaseException as error:
        traceback.print_exception(error.with_traceback(error.__traceback__.tb_next))
        sys.exit(1)
__run(${JSON.stringify(source)}, ${JSON.stringify(name)}, ${JSON.stringify(kind)})
`
