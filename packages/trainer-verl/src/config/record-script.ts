import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { bridgeDirectory } from '@aworld-train/python-bridge'

export interface RecordScriptOptions {
  /** Its name in messages. */
  readonly shown: string
  /** Its own arguments: `"$@"`. */
  readonly arguments: readonly string[]
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Folder that it is run from. */
  readonly directory: string
  /** Longest duration. Default: 10 seconds. */
  readonly timeoutMs?: number | undefined
}

/** The command with which a launch script starts verl. */
export interface RecordedScript {
  readonly arguments: readonly { readonly text: string; readonly where: string }[]
  /** Variables that it exports, or sets before the command. */
  readonly exports: Readonly<Record<string, string>>
  readonly notes: readonly string[]
  readonly problems: readonly string[]
}

const recordedPrograms = ['python', 'python3', 'torchrun', 'ray'] as const
const refusedPrograms = ['pip', 'pip3', 'rm', 'git', 'curl', 'wget'] as const

/**
 * A program that writes its name, its arguments and its environment to the record. NUL ends each text, and an empty text ends the record.
 */
const program = (kind: 'recorded' | 'refused', name: string) =>
  `#!/bin/sh\n{ printf '%s\\0' ${kind} ${name} "$#" "$@"; env -0; printf '\\0'; } >>"$AWORLD_TRAIN_RECORD"\nexit ${kind === 'refused' ? 1 : 0}\n`

const trainer = /^verl\.[\w.]*main\w*$|(^|\/)main_ppo\w*(\.py)?$/
const fix = 'put the keys into a YAML file, or give them as overrides.'

/**
 * Runs a launch script to find the command with which it starts verl. Python, torchrun and ray record their arguments instead of starting,
 * and programs that install, remove or fetch are refused. Everything else in it runs.
 */
export async function recordScript(file: string, options: RecordScriptOptions): Promise<RecordedScript> {
  const { shown, timeoutMs = 10_000 } = options
  const text = await readFile(file, 'utf8')
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-script-'))
  try {
    for (const name of recordedPrograms) await writeFile(join(folder, name), program('recorded', name), { mode: 0o755 })
    for (const name of refusedPrograms) await writeFile(join(folder, name), program('refused', name), { mode: 0o755 })
    const record = join(folder, 'record')
    await writeFile(record, '')
    const environment = {
      ...options.environment,
      PATH: [folder, options.environment['PATH'] ?? process.env['PATH']].filter(Boolean).join(delimiter),
      PYTHONPATH: [join(bridgeDirectory, 'aworld_train_bridge', 'verl', 'recorder'), options.environment['PYTHONPATH']]
        .filter(Boolean)
        .join(delimiter),
      AWORLD_TRAIN_RECORD: record,
    }
    const ended = await runBash(['bash', file, ...options.arguments], { cwd: options.directory, env: environment, timeoutMs })
    const commands = readRecord(await readFile(record, 'utf8'))
    return toScript(commands, { shown, text, ended, environment })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

interface Ended {
  /** The failure of the script, as the rest of a sentence; null after success. */
  readonly badly: string | null
}

async function runBash(
  [command, ...args]: readonly string[],
  { cwd, env, timeoutMs }: { cwd: string; env: NodeJS.ProcessEnv; timeoutMs: number },
): Promise<Ended> {
  return await new Promise((resolve) => {
    // The child gets a group of its own, so that processes that the script left in the background end with it.
    const child = spawn(command!, args, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'], detached: true })
    const end = () => {
      try {
        process.kill(-child.pid!, 'SIGKILL')
      } catch {}
    }
    let late = false
    let errorText = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      errorText = (errorText + chunk).slice(-2000)
    })
    const timer = setTimeout(() => {
      late = true
      end()
    }, timeoutMs)
    child.once('error', (cause) => {
      clearTimeout(timer)
      resolve({ badly: `could not be run by bash in ${cwd}: ${cause.message}` })
    })
    child.once('exit', (code) => {
      clearTimeout(timer)
      if (child.pid !== undefined) end()
      const last = errorText.trim().split('\n').at(-1)
      const words = last ? `, with: ${last}` : ''
      resolve({ badly: late ? `was ended after ${timeoutMs / 1000} seconds` : code === 0 ? null : `ended with ${code}${words}` })
    })
  })
}

interface Recorded {
  readonly kind: string
  readonly name: string
  readonly words: readonly string[]
  readonly environment: Readonly<Record<string, string>>
}

function readRecord(text: string): Recorded[] {
  const parts = text.split('\0')
  const commands: Recorded[] = []
  for (let at = 0; at + 2 < parts.length; ) {
    const [kind = '', name = '', count] = parts.slice(at, at + 3)
    const words = parts.slice(at + 3, at + 3 + Number(count))
    const environment: Record<string, string> = {}
    for (at += 3 + Number(count); at < parts.length && parts[at] !== ''; at++) {
      const [variable, ...value] = parts[at]!.split('=')
      environment[variable!] = value.join('=')
    }
    commands.push({ kind, name, words, environment })
    at++
  }
  return commands
}

/** Variables of every shell, and those of this recording. */
const ofShell = new Set(['_', 'SHLVL', 'PWD', 'OLDPWD', 'PATH', 'PYTHONPATH', 'AWORLD_TRAIN_RECORD'])

interface ScriptFacts {
  readonly shown: string
  readonly text: string
  readonly ended: Ended
  readonly environment: Readonly<Record<string, string | undefined>>
}

function toScript(commands: readonly Recorded[], { shown, text, ended, environment }: ScriptFacts): RecordedScript {
  const starts = (command: Recorded) => command.words.some((word) => trainer.test(word))
  const others = commands.filter((command) => !starts(command))
  const notes = [
    `${shown} was run to see what it starts: ${recordedPrograms.join(', ')} recorded their arguments, and ${refusedPrograms.join(', ')} were refused.`,
    ...others.map(
      ({ kind, name, words }) => `${shown}: "${[name, ...words].join(' ')}" was ${kind === 'refused' ? 'refused' : 'not run'}.`,
    ),
  ]
  const [command, second] = commands.filter(starts)
  if (second) return { arguments: [], exports: {}, notes, problems: [`it starts two trainers; ${fix}`] }
  if (!command) {
    const why = ended.badly === null ? '' : `: it ${ended.badly}`
    const passed = others.map(({ name, words }) => ` "${[name, ...words].join(' ')}" was not run.`).join('')
    return {
      arguments: [],
      exports: {},
      notes,
      problems: [`it starts no trainer, such as "python3 -m verl.trainer.main_ppo key=value …"${why}.${passed} Otherwise ${fix}`],
    }
  }
  const { words } = command
  const joints = [...text.matchAll(/[^\s\\]\\\n(?<key>\+{0,2}[\w@/]+(?:\.[\w@/]+)+)=/g)].map(({ groups }) => `${groups!['key']}=`)
  const overrides = words.slice(words.findIndex((word) => trainer.test(word)) + 1).flatMap((word) => unjoin(word, joints))
  if (joints.length > 0)
    notes.push(
      `${shown}: a blank is missing before the \\ at the end of a line, which makes one word of two keys; ${joints.map((each) => each.slice(0, -1)).join(' and ')} were read as keys of their own.`,
    )
  return {
    arguments: overrides.map((override) => ({ text: override, where: placeOf(override, text, shown) })),
    exports: Object.fromEntries(
      Object.entries(command.environment).filter(([name, value]) => !ofShell.has(name) && environment[name] !== value),
    ),
    notes,
    problems: [],
  }
}

/** Splits a word before each of the keys that are joined in it. */
function unjoin(word: string, joints: readonly string[]): string[] {
  for (const joint of joints) {
    const at = word.indexOf(joint, 1)
    if (at > 0) return [...unjoin(word.slice(0, at), joints), ...unjoin(word.slice(at), joints)]
  }
  return [word]
}

/** The line that names a key, if there is exactly one. */
function placeOf(override: string, text: string, shown: string): string {
  const key = override.split('=')[0]!
  const lines = text.split('\n').flatMap((line, index) => (!line.trim().startsWith('#') && line.includes(`${key}=`) ? [index + 1] : []))
  return lines.length === 1 ? `${shown} line ${lines[0]}` : shown
}
