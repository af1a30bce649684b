import { basename, resolve } from 'node:path'
import { type OpenDashboard, openDashboard } from '@aworld-train/dashboard'

/** The dashboard of a run that this process trains; it ends with the run. */
export interface RunDashboard {
  /** Serves the run at `path`, and prints the address. A dashboard that cannot be served costs the run nothing. */
  open(path: string): void
  close(): Promise<void>
}

export function createRunDashboard(print: (line: string) => void): RunDashboard {
  let opening: Promise<OpenDashboard | null> | null = null
  return {
    open(path) {
      opening ??= openDashboard({ runs: [path] }).then(
        (dashboard) => {
          print(`watch    ${dashboard.url}#/${basename(resolve(path))}`)
          return dashboard
        },
        (error: Error) => {
          print(`watch    not served: ${error.message}`)
          return null
        },
      )
    },
    async close() {
      await (await opening)?.close()
    },
  }
}
