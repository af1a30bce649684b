import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { RunReport } from '@aworld-train/core'
import type { RunEvent } from 'aworld-train'
import type { ExamStart } from './train-exam.ts'

const program = fileURLToPath(new URL('./exam-process.ts', import.meta.url))

/** Trains in a process that is killed in the second step, when the first has its checkpoint, and then in another one to the end. */
export async function trainKilled(startOf: (start: 'a' | 'b') => ExamStart): Promise<RunReport> {
  const first = await play(startOf('a'), ({ type }, child, seen) => {
    if (type === 'rollout-end' && seen.some((event) => event.type === 'step-end')) child.kill('SIGKILL')
  })
  if (first.signal !== 'SIGKILL') throw new Error(`The training ended before it was killed, with ${first.code}:\n${first.log}`)
  const { runPath } = startOf('a')
  const second = await play(startOf('b'))
  if (second.code !== 0) throw new Error(`The training did not go on and ended with ${second.code}:\n${second.log}`)
  const runs = (await readdir(runPath, { withFileTypes: true })).filter(
    (entry) => entry.isDirectory() && !entry.name.startsWith('weights-'),
  )
  if (runs.length !== 1) throw new Error(`There are the runs ${runs.map(({ name }) => name).join(' and ')} where one was to go on.`)
  return RunReport.parse(JSON.parse(await readFile(join(runPath, runs[0]!.name, 'report.json'), 'utf8')))
}

type Child = ReturnType<typeof spawn>

async function play(start: ExamStart, onEvent: (event: RunEvent, child: Child, seen: readonly RunEvent[]) => void = () => {}) {
  const child = spawn(process.execPath, [program, JSON.stringify(start)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const seen: RunEvent[] = []
  let log = ''
  createInterface({ input: child.stdout }).on('line', (line) => {
    const event = JSON.parse(line) as RunEvent
    onEvent(event, child, seen)
    seen.push(event)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-8000)
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { code, signal, log }
}
