import { styleText } from 'node:util'
import type { RunEvent } from '@aworld-train/protocol'
import { renderCurve, renderSparkline } from './curve.ts'
import { renderEpisode } from './episode-text.ts'
import { renderProgressBar } from './progress-bar.ts'

export interface RunDisplay {
  show(event: RunEvent): void
  close(): void
}

export interface RunDisplayOptions {
  readonly stream: NodeJS.WriteStream
  /** One JSON event a line instead of text. */
  readonly json: boolean
}

/** Shows the events of a run: bars on a terminal, plain lines in a log, JSON for programs. */
export function createRunDisplay({ stream, json }: RunDisplayOptions): RunDisplay {
  if (json) return { show: (event) => void stream.write(`${JSON.stringify(event)}\n`), close() {} }
  return createTextDisplay(stream)
}

function createTextDisplay(stream: NodeJS.WriteStream): RunDisplay {
  const live = stream.isTTY === true
  const rewards: number[] = []
  let bar: { label: string; done: number; total: number; startedAt: number; from: number; suffix: string } | null = null
  /** Of the bar of all steps, which evaluations stand in between. */
  let train: { readonly startedAt: number; readonly from: number } | null = null
  /** Rollouts of training: those that run, and those that ended in this step. */
  const rollouts = { running: 0, ended: 0 }
  let drawnAt = 0
  let drawnDone = 0

  const clear = () => {
    if (live && bar) stream.write('\r\x1b[2K')
  }
  const line = (text: string) => {
    clear()
    stream.write(`${text}\n`)
    draw(true)
  }
  const draw = (force = false) => {
    if (!bar) return
    const now = Date.now()
    if (live) {
      if (!force && now - drawnAt < 80) return
      drawnAt = now
      const working = bar.label === 'train' && rollouts.running > 0 ? `${rollouts.running} rollouts run, ${rollouts.ended} ended` : ''
      const suffix = [bar.suffix, working].filter(Boolean).join('  ')
      stream.write(`\r\x1b[2K${renderProgressBar({ ...bar, suffix, now, columns: stream.columns ?? 80 })}`)
    } else if (bar.done === bar.total || bar.done - drawnDone >= bar.total / 5) {
      if (drawnDone === bar.done) return
      drawnDone = bar.done
      stream.write(`${bar.label}: ${bar.done}/${bar.total}${bar.suffix ? `  ${bar.suffix}` : ''}\n`)
    }
  }
  const startBar = (label: string, total: number, suffix = '') => {
    clear()
    bar = { label, done: 0, total, startedAt: Date.now(), from: 0, suffix }
    drawnDone = 0
    draw(true)
  }
  const endBar = () => {
    clear()
    bar = null
  }
  // The clock goes on while nothing happens, as when a trainer starts.
  const clock = live ? setInterval(() => draw(), 1000).unref() : undefined

  return {
    show(event) {
      switch (event.type) {
        case 'run-start':
          line(
            `${styleText('bold', 'run')}      ${event.path}${event.resumedFromStep === null ? '' : `  (resumed after step ${event.resumedFromStep})`}`,
          )
          for (const [name, value] of Object.entries(event.details)) line(`${name.padEnd(8)} ${String(value)}`)
          break
        case 'evaluation-start':
          startBar(`evaluate ${event.name}`, event.rollouts)
          break
        case 'evaluation-end': {
          endBar()
          const { reward, low, high, rollouts, failed } = event.metrics
          const failures = failed ? styleText('yellow', `  ${failed} failed`) : ''
          const interval = low === undefined || high === undefined ? '' : ` [${low.toFixed(3)}, ${high.toFixed(3)}]`
          line(
            `${styleText('bold', event.name)}: reward ${styleText('bold', reward?.toFixed(3) ?? 'missing')}${interval} on ${rollouts ?? 0} tasks${failures}`,
          )
          break
        }
        case 'phase-progress': {
          const suffix = Object.entries(event.metrics)
            .map(([name, value]) => `${name} ${value.toPrecision(3)}`)
            .join('  ')
          if (!bar || bar.label !== event.phase) startBar(event.phase, event.total, suffix)
          if (bar) Object.assign(bar, { done: event.done, suffix })
          draw()
          if (event.done >= event.total) {
            draw(true)
            if (live) stream.write('\n')
            bar = null
          }
          break
        }
        case 'step-start':
          rollouts.ended = 0
          if (bar?.label !== 'train') {
            train ??= { startedAt: Date.now(), from: event.step - 1 }
            startBar('train', event.steps)
            drawnDone = event.step - 1
            if (bar) Object.assign(bar, { ...train, done: event.step - 1 })
          }
          break
        case 'step-end': {
          const reward = event.metrics['rewardMean']
          if (reward !== undefined) rewards.push(reward)
          if (bar?.label === 'train')
            Object.assign(bar, {
              done: event.step,
              suffix: `reward ${reward?.toFixed(3) ?? 'missing'} ${live ? renderSparkline(rewards) : ''}`.trimEnd(),
            })
          draw()
          if (event.step === event.steps) {
            endBar()
            line(`\n${styleText('bold', 'mean reward of each step')}\n${renderCurve(rewards)}\n`)
          }
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
          } else if (bar?.label.startsWith('evaluate')) bar.done += 1
          draw()
          break
        case 'episode-sampled':
          line(`\n${styleText('gray', `one episode of step ${event.step}`)}\n${renderEpisode(event)}\n`)
          break
        case 'warning-raised':
          line(`${styleText('yellow', 'warning')}  ${event.message}`)
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
