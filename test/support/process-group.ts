import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** Finds a port of loopback that nothing listens on at present. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}

/** Ends a process and its descendants, forcibly if they do not react, because workers outlive their parent. Start it with `detached`. */
export async function stopGroup(child: ChildProcess): Promise<void> {
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(-(child.pid as number), name)
      return true
    } catch {
      return false
    }
  }
  const gone = async (withinMs: number) => {
    for (const end = Date.now() + withinMs; Date.now() < end; await sleep(100)) {
      try {
        process.kill(-(child.pid as number), 0)
      } catch {
        return true
      }
    }
    return false
  }
  if (!signal('SIGTERM') || (await gone(10_000))) return
  signal('SIGKILL')
  if (!(await gone(10_000))) throw new Error(`The process group ${child.pid} did not end.`)
}
