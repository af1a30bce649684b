import { describeFailure, metricsByRole, type RunEvent } from '@aworld-train/core'

/** Describes the progress of a run in plain lines: one for each step and evaluation, and five for a long phase. */
export function progressLines(print: (line: string) => void): (event: RunEvent) => void {
  let phase = { name: '', done: 0 }
  return (event) => {
    switch (event.type) {
      case 'run-start':
        print(`run ${event.path}${event.resumedFromStep === null ? '' : `, resumed after step ${event.resumedFromStep}`}`)
        if (event.details['agent'] !== undefined) print(`agents: ${event.details['agent']}`)
        break
      case 'phase-progress': {
        const { done, total } = event
        if (done === 0 && total === 1) print(`${event.phase} …`)
        if (phase.name !== event.phase) phase = { name: event.phase, done: 0 }
        if (done < total && done - phase.done < total / 5) break
        phase.done = done
        const metrics = Object.entries(event.metrics).map(([name, value]) => `, ${name} ${value.toPrecision(3)}`)
        print(`${event.phase} ${done}/${total}${metrics.join('')}`)
        break
      }
      case 'step-end':
        print(
          `step ${event.step}${event.steps > 0 ? `/${event.steps}` : ''}, reward ${event.metrics['rewardMean']?.toFixed(3) ?? 'missing'}${Array.from(metricsByRole(event.metrics), rolePart).join('')}`,
        )
        break
      case 'evaluation-end': {
        const { reward, low, high, rollouts = 0, failed, unscored, countedRollouts } = event.metrics
        const of = countedRollouts === undefined ? rollouts : `${countedRollouts} of ${rollouts}`
        const interval = low === undefined || high === undefined ? '' : ` [${low.toFixed(3)}, ${high.toFixed(3)}]`
        print(
          `${event.name}: reward ${reward?.toFixed(3) ?? 'missing'}${interval} on ${of} rollouts${failed ? `, ${failed} failed` : ''}${unscored ? `, ${unscored} not scored` : ''}`,
        )
        for (const failure of event.failures ?? []) print(`failed: ${describeFailure(failure)}`)
        break
      }
      case 'warning-raised':
        print(`${event.code === 'CONFIG_NOTE' ? 'note' : 'warning'}: ${event.message}`)
        break
      case 'run-end':
        print(`run ${event.status}`)
        break
    }
  }
}

/** The reward of a role, which may have taken part in no rollout, and how many of its turns were malformed. */
function rolePart([name, { reward, malformedTurns }]: [string, Record<string, number>]): string {
  return `, ${name} ${reward?.toFixed(3) ?? 'missing'}${malformedTurns ? ` (${malformedTurns} malformed)` : ''}`
}
