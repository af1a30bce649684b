// Starts jails of every kind, again and again, until it is killed. Its programs sleep for the time that it is given.
import { openParserJail, openProgramJail, openSandbox } from '@aworld-train/tools/sandbox'

const [time] = process.argv.slice(2)
const { signal } = new AbortController()
const [sandbox, programs, parsers] = await Promise.all([
  openSandbox({ tier: 'bubblewrap' }),
  openProgramJail(),
  openParserJail({ isolation: 'bubblewrap' }),
])
/** Three at a time. */
const again = (start: () => Promise<unknown>) =>
  Promise.all(
    [1, 2, 3].map(async () => {
      for (;;) await start()
    }),
  )
const parser = new URL(`../../packages/tools/src/sandbox/testing/hostile-parser.ts?${time}`, import.meta.url)

console.log('ready')
await Promise.all([
  again(async () => {
    const workspace = await sandbox.workspace({}, signal)
    void workspace.run({ command: ['sleep', time!], timeoutMs: 60_000 }, signal).catch(() => {})
    await workspace.shell(signal)
    await workspace.close()
  }),
  again(async () => {
    const program = programs.spawn({ command: ['sleep', time!], env: {}, directory: null, readable: [] })
    await new Promise((resolve) => setTimeout(resolve, 20))
    process.kill(-program.pid!, 'SIGKILL')
  }),
  again(() => parsers.parse(parser, Buffer.from('x'), { what: 'spin' }, AbortSignal.timeout(200)).catch(() => {})),
])
