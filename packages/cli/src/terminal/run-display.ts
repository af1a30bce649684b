import { styleText } from 'node:util'
import { describeFailure, type RunEvent } from '@aworld-train/core'
import { counted } from './counted.ts'
import { renderSparkline } from './curve.ts'
import { dollars } from './dollars.ts'
import { renderEpisode } from './episode-text.ts'
import { createLiveLine, isLiveTerminal, type LiveLine } from './live-line.ts'
import { renderProgressBar } from './progress-bar.ts'
import { wrapLabelled } from './text-width.ts'

export interface RunDisplay {
  show(event: RunEvent): void
  /** Prints a line that belongs to no event, unless events are printed for programs. */
  print(line: string): void
  close(): void
}

export interface RunDisplayOptions {
  readonly stream: NodeJS.WriteStream
  /** Whether it prints one JSON event a line instead of text. */
  readonly json: boolean
  /** Environment whose `TERM` and `CI` tell whether lines can be redrawn. Default: that of the process. */
  readonly env?: NodeJS.ProcessEnv
}

/** Shows the events of a run as bars on a terminal, plain lines in a log, or JSON for programs. */
export function createRunDisplay({ stream, json, env = process.env }: RunDisplayOptions): RunDisplay {
  if (json) return { show: (event) => void stream.write(`${JSON.stringify(event)}\n`), print() {}, close() {} }
  return createTextDisplay(stream, isLiveTerminal(stream, env) ? createLiveLine(stream) : null)
}

interface Bar {
  readonly label: string
  readonly unit: string
  readonly total: number
  readonly startedAt: number
  readonly from: number
  /** What has ended of an evaluation; `null` for another bar. */
  readonly evaluated: Evaluated | null
  done: number
  notes: readonly string[]
}

interface Evaluated {
  rewards: number
  scored: number
  failed: number
  cost: number
}

/** Rollouts after which the cost of an evaluation is estimated. */
const firstRollouts = 8

/** Shows text. Without a live line it is that of a log. */
function createTextDisplay(stream: NodeJS.WriteStream, live: LiveLine | null): RunDisplay {
  const rewards: number[] = []
  let bar: Bar | null = null
  /** State of the bar over all steps. It is kept during evaluations. */
  let train: { readonly startedAt: number; readonly from: number } | null = null
  /** Rollouts of training that are running, and those that ended in this step. */
  const rollouts = { running: 0, ended: 0 }
  let drawnAt = 0
  let drawnDone = 0

  const line = (text: string) => {
    if (live) live.print(text)
    else stream.write(`${text}\n`)
  }
  const labelled = (text: string) => line(live ? wrapLabelled(text, live.columns()) : text)
  const draw = (force = false) => {
    if (!bar) return
    if (live) drawLive(live, bar, force)
    else if (drawnDone !== bar.done && (bar.done === bar.total || bar.done - drawnDone >= bar.total / 5)) {
      drawnDone = bar.done
      const { label, done, total, unit, notes } = bar
      // The number of steps of a loop of one's own is not known.
      line(`${label}: ${done}${total > 0 ? `/${total}` : ''}${unit && ` ${unit}`}${notes.map((note) => `  ${note}`).join('')}`)
    }
  }
  const drawLive = (terminal: LiveLine, { notes, ...state }: Bar, force: boolean) => {
    const now = Date.now()
    if (!force && now - drawnAt < 80) return
    drawnAt = now
    const working = rollouts.running > 0 ? [`${rollouts.running} rollouts run`, `${rollouts.ended} ended`] : []
    const shown = state.label === 'train' ? [...notes, ...working, renderSparkline(rewards)] : notes
    terminal.draw(renderProgressBar({ ...state, notes: shown, now, columns: terminal.columns() }))
  }
  const startBar = (
    label: string,
    total: number,
    unit: string,
    { done = 0, startedAt = Date.now(), from = 0, evaluated = null as Evaluated | null } = {},
  ) => {
    bar = { label, unit, done, total, startedAt, from, evaluated, notes: [] }
    drawnDone = done
    draw(true)
  }
  const startTrainBar = ({ step, steps }: { readonly step: number; readonly steps: number }) => {
    if (bar?.label === 'train') return
    train ??= { startedAt: Date.now(), from: step - 1 }
    startBar('train', steps, 'steps', { ...train, done: step - 1 })
  }
  const countEvaluated = (of: Bar, evaluated: Evaluated, event: Extract<RunEvent, { type: 'rollout-end' }>) => {
    const { reward, cost = 0, error } = event
    of.done += 1
    evaluated.cost += cost
    if (reward !== null) {
      evaluated.rewards += reward
      evaluated.scored += 1
    } else if (error) evaluated.failed += 1
    // What an earlier process of the run did is in the report alone.
    const isWhole = of.from === 0
    of.notes = [
      ...(isWhole && evaluated.scored > 0 ? [(evaluated.rewards / evaluated.scored).toFixed(2)] : []),
      ...(isWhole && evaluated.cost > 0 ? [dollars(evaluated.cost)] : []),
      ...(evaluated.failed > 0 ? [styleText('yellow', `${evaluated.failed} failed`)] : []),
    ]
    if (isWhole && of.done === firstRollouts && of.total > 2 * firstRollouts && evaluated.cost > 0)
      line(`${''.padEnd(9)}about ${dollars((evaluated.cost / of.done) * of.total)}, going by the first ${firstRollouts} rollouts`)
  }
  const endBar = () => {
    live?.draw('')
    bar = null
  }
  // The clock keeps running while nothing happens, such as at the start of a trainer.
  const clock = live ? setInterval(() => draw(), 1000).unref() : undefined

  return {
    print: line,
    show(event) {
      switch (event.type) {
        case 'run-start':
          endBar()
          line(
            `${styleText('bold', 'run')}      ${event.path}${event.resumedFromStep === null ? '' : `  (resumed after step ${event.resumedFromStep})`}`,
          )
          for (const [name, value] of Object.entries(event.details)) labelled(`${name.padEnd(8)} ${String(value)}`)
          break
        case 'evaluation-start':
          startBar(event.name === 'eval' ? 'eval' : `evaluate ${event.name}`, event.rollouts, 'rollouts', {
            done: event.done ?? 0,
            from: event.done ?? 0,
            evaluated: { rewards: 0, scored: 0, failed: 0, cost: 0 },
          })
          break
        case 'evaluation-end': {
          endBar()
          const { reward, low, high, tasks, rollouts = 0, failed, unscored, countedTasks, countedRollouts } = event.metrics
          const failures = `${failed ? styleText('yellow', `, ${failed} failed`) : ''}${unscored ? `, ${unscored} not scored` : ''}`
          const interval = low === undefined || high === undefined ? '' : ` [${low.toFixed(3)}, ${high.toFixed(3)}]`
          const part = (count: number | undefined) => (count === undefined ? '' : `${count} of `)
          const ofTasks = tasks === undefined ? [] : [part(countedTasks) + counted(tasks, 'task')]
          const of = [...ofTasks, part(countedRollouts) + counted(rollouts, 'rollout')].join(', ')
          line(
            `${styleText('bold', event.name)}: reward ${styleText('bold', reward?.toFixed(3) ?? 'missing')}${interval} on ${of}${failures}`,
          )
          for (const failure of event.failures ?? []) labelled(`${styleText('yellow', 'failed')}   ${describeFailure(failure)}`)
          break
        }
        case 'phase-progress': {
          if (bar?.label !== event.phase) {
            startBar(event.phase, event.total, '')
            if (!live && event.done === 0 && event.total === 1) line(`${event.phase} …`)
          }
          const notes = Object.entries(event.metrics).map(([name, value]) => `${name} ${value.toPrecision(3)}`)
          if (bar) Object.assign(bar, { done: event.done, notes })
          draw(event.done >= event.total)
          if (event.done >= event.total) {
            live?.keep()
            bar = null
          }
          break
        }
        case 'step-start':
          rollouts.ended = 0
          startTrainBar(event)
          break
        case 'step-end': {
          const reward = event.metrics['rewardMean']
          if (reward !== undefined) rewards.push(reward)
          // An evaluation at the end of a step had a bar of its own.
          startTrainBar(event)
          if (bar) Object.assign(bar, { done: event.step, notes: [`reward ${reward?.toFixed(3) ?? 'missing'}`] })
          draw(true)
          if (event.step === event.steps) endBar()
          break
        }
        case 'rollout-start':
          if (event.split === 'train') rollouts.running += 1
          draw()
          break
        case 'rollout-end':
          if (event.split === 'train') {
            rollouts.running = Math.max(0, rollouts.running - 1)
            rollouts.ended += 1
          } else if (bar?.evaluated) countEvaluated(bar, bar.evaluated, event)
          draw()
          break
        case 'episode-sampled':
          line(`${styleText('gray', `one episode of step ${event.step}`)}\n${renderEpisode({ ...event, columns: live?.columns() })}\n`)
          break
        case 'warning-raised':
          labelled(
            event.code === 'CONFIG_NOTE'
              ? `${styleText('gray', 'note')}     ${event.message}`
              : `${styleText('yellow', 'warning')}  ${event.message}`,
          )
          break
        case 'run-end':
          endBar()
          break
        case 'weights-updated':
        case 'checkpoint-saved':
          break
      }
    },
    close() {
      clearInterval(clock)
      endBar()
    },
  }
}
