// Opens a workspace with a shell, a daemon and a program, says so, and waits to be killed.
import { setTimeout as sleep } from 'node:timers/promises'
import { openSandbox } from '@aworld-train/tools/sandbox'

const [time] = process.argv.slice(2)
const { signal } = new AbortController()
const sandbox = await openSandbox({ tier: 'bubblewrap' })
const workspace = await sandbox.workspace({}, signal)
const shell = await workspace.shell(signal)
await shell.execute(`(setsid sleep ${time} &); sleep ${time} &`, 10_000, signal)
void workspace.run({ command: ['sleep', time!], timeoutMs: 60_000 }, signal)
console.log('ready')
await sleep(60_000)
