#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import nodeModule from 'node:module'
import { Command, CommanderError } from 'commander'
import { commands } from './commands/index.ts'
import { exitCodes, exitCodesText } from './exit-codes.ts'
import { reserveOutput } from './reserve-output.ts'
import { createStopSignal } from './stop-signal.ts'

// Node keeps its compiled code in a folder of its own, so the next command starts sooner. A Node that is too old lacks this.
nodeModule.enableCompileCache?.()

// Modules that only some commands need are imported when one of these runs. Thus help is quick, and an old Node gets a message instead of a
// syntax error.
const { version, engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
  engines: { node: string }
}
const program = new Command('aworld-train')
  .description('Train the model behind a TypeScript agent on your own tasks.')
  .version(version)
  .exitOverride()
  .showHelpAfterError('(add --help for the options)')
  .showSuggestionAfterError()
  .addHelpText('after', ({ command }) => `\n${command.createHelp().boxWrap(exitCodesText, process.stdout.columns || 80)}`)

const stop = createStopSignal(process)
process.on('exit', () => {
  if (stop.outputClosed()) process.exitCode = exitCodes.outputClosed
})

try {
  if (!isNodeRecent()) throw new Error(`aworld-train needs Node ${engines.node}; this is ${process.version}. Install a newer Node.`)
  const [first, second] = process.argv.slice(2)
  const named = first === 'help' ? second : first
  for (const { name, description, load } of commands) {
    const command = program.command(name).description(description).exitOverride()
    if (name !== named) continue
    const { applyDefinition } = await import('./define-command.ts')
    const definition = await load()
    applyDefinition(command, definition, async (args, options) => {
      const output = options['json'] === true ? reserveOutput(process) : process.stdout
      process.exitCode = (await definition.run({ args, options, signal: stop.signal, output })) ?? exitCodes.done
    })
  }
  await program.parseAsync()
} catch (error) {
  process.exitCode = await report(error)
} finally {
  stop.dispose()
}

/** Type stripping without a flag came with 22.18 and 23.6, SQLite without a flag with 22.13 and 23.4. */
function isNodeRecent(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 19)
}

async function report(error: unknown): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.misuse
  if (stop.signal.aborted) return exitCodes.stopped
  if (!isNodeRecent()) {
    process.stderr.write(`${(error as Error).message}\n`)
    return exitCodes.failed
  }
  const { exitCodeOf, TrainError } = await import('@aworld-train/core')
  if (error instanceof TrainError) {
    process.stderr.write(`${error.message}\n`)
    return exitCodeOf(error)
  }
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return exitCodes.failed
}
