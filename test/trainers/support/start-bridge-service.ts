import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const serve = fileURLToPath(new URL('./bridge-service.ts', import.meta.url))

export interface ServiceProcess {
  readonly url: string
  /** SIGKILL, as when the machine takes it. */
  kill(): Promise<void>
  close(): Promise<void>
}

/** bridge-service.ts in a process of its own. */
export async function startBridgeService(setting: Readonly<Record<string, unknown>>): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [serve, JSON.stringify(setting)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-8000)
  })
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()))
  // A start takes a second or two; one that hangs fails here, with what it printed, and not at the deadline of a whole test.
  const deadline = setTimeout(() => child.kill('SIGKILL'), 180_000)
  const { url } = await new Promise<{ url: string }>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', (line) => resolve(JSON.parse(line)))
    void exited.then(() => reject(new Error(`The rollout service ended, or did not serve within three minutes:\n${log}`)))
  }).finally(() => clearTimeout(deadline))
  return {
    url,
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
    async close() {
      child.stdin.end()
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await exited
      clearTimeout(timer)
    },
  }
}
