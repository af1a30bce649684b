import { Episode, plainTrajectory, type RolloutState, TrainingSample } from '@aworld-train/core'
import { z } from 'zod'

/** Selects the parts of a state that are sent; both are large. */
export interface Parts {
  readonly episode: boolean
  readonly samples: boolean
}

/** Writes a state as JSON text, with typed arrays as arrays of numbers. It is not checked, because it was made here. */
export function toWire(state: RolloutState, { episode, samples }: Parts): string {
  const plain = {
    ...state,
    episode: state.episode && episode ? plainEpisode(state.episode) : null,
    samples: samples ? state.samples.map(plainSample) : [],
  }
  return JSON.stringify(plain)
}

function plainEpisode({ trajectories, rewardTrajectories, ...episode }: Episode): object {
  return {
    ...episode,
    trajectories: trajectories.map(plainTrajectory),
    ...(rewardTrajectories && { rewardTrajectories: rewardTrajectories.map(plainTrajectory) }),
  }
}

function plainSample(sample: TrainingSample): object {
  const { tokenIds, lossMask, rolloutLogprobs } = sample
  return {
    ...sample,
    tokenIds: Array.from(tokenIds),
    lossMask: Array.from(lossMask),
    rolloutLogprobs: Array.from(rolloutLogprobs),
  }
}

/** Reads the state in an answer of the service. Throws a ZodError for another format. */
export function fromWire(json: unknown): RolloutState {
  const { episode, samples, ...rest } = json as Record<string, unknown>
  return {
    ...(rest as Omit<RolloutState, 'episode' | 'samples'>),
    episode: episode === null ? null : z.decode(Episode, episode as z.input<typeof Episode>),
    samples: z.decode(z.array(TrainingSample), samples as z.input<typeof TrainingSample>[]),
  }
}
