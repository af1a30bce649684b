import { type EpisodeReader, messageModels, type RunEvent } from '@aworld-train/core'

/** Shows one training episode of step 1 and of every tenth step, each time from another place in the step. */
export function createEpisodeSampler(
  store: Pick<EpisodeReader, 'episode'>,
  emit: (event: RunEvent) => void,
): { onEvent: (event: RunEvent) => void } {
  let finished: string[] = []
  return {
    onEvent(event) {
      emit(event)
      if (event.type === 'rollout-end' && event.split === 'train') finished.push(event.rollout)
      if (event.type !== 'step-end') return
      const ofStep = finished.sort()
      finished = []
      if (event.step !== 1 && event.step % 10 !== 0) return
      const chosen = ofStep[(event.step * 37) % (ofStep.length || 1)]
      const episode = chosen === undefined ? null : store.episode(chosen)
      if (!episode) return
      const { rollout, taskId, reward, messages } = episode
      emit({ type: 'episode-sampled', at: Date.now(), rollout, taskId, step: event.step, reward, messages, models: messageModels(episode) })
    },
  }
}
