import { join, resolve } from 'node:path'
import type { RunEvent, RunProgress } from '@aworld-train/core'
import { curveOf } from './curve-name.ts'
import { type EventFile, openEventFile } from './event-file.ts'
import type { ScalarsOfStep } from './event-proto.ts'

/** Writes the numbers of a run's steps and evaluations for TensorBoard as they arrive. */
export interface TensorBoardLog {
  /** Keeps the numbers of an event, if it has any. Never throws; the first error of the disk becomes a warning. */
  read(event: RunEvent): void
  close(): void
}

export interface TensorBoardLogOptions {
  readonly directory: string
  /** Steps after this one are trained again; their numbers are written again. Default: none. */
  readonly resumedFromStep?: number | undefined
  /** Steps that the file lacks are written when it is opened. */
  readonly store: RunProgress
  readonly onWarning: (message: string) => void
}

const folderName = (name: string) => name.replaceAll(/[\\/]/g, '-').replace(/^\.+$/, '-')

/** TENSORBOARD_DIR, else a folder of the run by project and experiment. */
export function tensorBoardDirectory(
  run: string,
  { project, experiment }: { readonly project: string; readonly experiment: string },
): string {
  const named = process.env['TENSORBOARD_DIR']
  return named ? resolve(named) : join(run, 'tensorboard_log', folderName(project), folderName(experiment))
}

const fileKey = 'tensorboard-file'

/** Opens the event file of a run, which an earlier process of it may have begun in that folder. */
export async function openTensorBoardLog({ directory, resumedFromStep, store, onWarning }: TensorBoardLogOptions): Promise<TensorBoardLog> {
  let file: EventFile | null = null

  /** Runs `work` until the disk fails. A training does not end for want of a curve. */
  function trying(work: () => void): void {
    try {
      work()
    } catch (error) {
      file?.close()
      file = null
      onWarning(`TensorBoard's files in ${directory} end here: ${error instanceof Error ? error.message : error}. The run goes on.`)
    }
  }

  const names = { ...(store.getState(fileKey) as Record<string, string> | null | undefined) }
  const name = names[directory] ?? `events.out.tfevents.${Math.floor(Date.now() / 1_000)}.${process.pid}`
  if (!(directory in names)) await store.setState(fileKey, { ...names, [directory]: name })
  trying(() => {
    file = openEventFile(join(directory, name), resumedFromStep)
    for (const { step, metrics } of store.steps()) file.append(ofStep(step, metrics), Date.now())
  })

  return {
    read(event) {
      const scalars = toScalars(event)
      if (scalars) trying(() => file?.append(scalars, event.at))
    },
    close() {
      file?.close()
      file = null
    },
  }
}

function toScalars(event: RunEvent): ScalarsOfStep | null {
  if (event.type === 'step-end') return ofStep(event.step, event.metrics)
  if (event.type === 'evaluation-end') return prefixed(curveOf(event.name), event.step, event.metrics)
  return null
}

const ofStep = (step: number, metrics: Readonly<Record<string, number>>) => prefixed('train', step, metrics)

/** Names of policies and roles have a prefix of their own, by which TensorBoard groups them. */
const prefixed = (prefix: string, step: number, metrics: Readonly<Record<string, number>>): ScalarsOfStep => ({
  step,
  values: Object.fromEntries(
    Object.entries(metrics).map(([name, value]) => [/^(policy|role)\//.test(name) ? name : `${prefix}/${name}`, value]),
  ),
})
