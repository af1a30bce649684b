import type { Trap } from './trap.ts'

const actor = 'actor_rollout_ref.actor'
const rollout = 'actor_rollout_ref.rollout'
const correction = 'algorithm.rollout_correction'

/** Traps of drawing tokens, of the trainer's knowledge about it, and of the length of conversations. */
export const samplingTraps: readonly Trap[] = [
  {
    name: 'truncated-sampling',
    severity: 'warning',
    check: ({ at, number }) => {
      const [p, k] = [number(`${rollout}.top_p`), number(`${rollout}.top_k`)]
      if (p >= 1 && k <= 0) return null
      const what = [...(p < 1 ? [`top_p ${p}`] : []), ...(k > 0 ? [`top_k ${k}`] : [])].join(' and ')
      const mode = String(at(`${rollout}.logprobs_mode`))
      return `${rollout} samples with ${what}: the logprobs of the engine (${mode}) are those of the truncated distribution, and the trainer computes them over all tokens, so the two differ and the policy drifts. Set top_p to 1 and top_k to -1.`
    },
  },
  {
    name: 'greedy-training',
    severity: 'error',
    check: ({ number }) =>
      number(`${rollout}.temperature`) <= 0
        ? `${rollout}.temperature is ${number(`${rollout}.temperature`)}: samples of a group would all be alike, and nothing is learnt. Set it to 1.`
        : null,
  },
  {
    name: 'no-logprobs',
    severity: 'error',
    check: ({ at }) =>
      at(`${rollout}.calculate_log_probs`) === false
        ? `${rollout}.calculate_log_probs is false: tokens would come without the logprobs they were sampled with, which the bridge checks and the ledger needs. Set it to true.`
        : null,
  },
  {
    name: 'correction-without-logprobs',
    severity: 'error',
    check: ({ at }) =>
      at(`${rollout}.calculate_log_probs`) !== true &&
      (at(`${correction}.rollout_is`) !== null || at(`${correction}.rollout_rs`) !== null || at(`${correction}.bypass_mode`) === true)
        ? `${correction} is on, and ${rollout}.calculate_log_probs is not: there is nothing to correct with. Set it to true.`
        : null,
  },
  {
    name: 'raw-logprobs',
    severity: 'warning',
    check: ({ at, number }) =>
      at(`${rollout}.logprobs_mode`) === 'raw_logprobs' && number(`${rollout}.temperature`) !== 1
        ? `${rollout}.logprobs_mode is raw_logprobs with temperature ${number(`${rollout}.temperature`)}: the engine reports logprobs before the temperature, the trainer computes them after it. Set it to processed_logprobs.`
        : null,
  },
  {
    name: 'async-without-correction',
    severity: 'warning',
    check: ({ at }) => {
      const mode = at('trainer.v1.trainer_mode')
      return mode !== 'sync' &&
        at('trainer.use_v1') !== false &&
        at(`${correction}.rollout_is`) === null &&
        at(`${correction}.bypass_mode`) !== true
        ? `trainer.v1.trainer_mode is ${mode}, in which samples are older than the weights they train, without ${correction}. Set ${correction}.rollout_is to token.`
        : null
    },
  },
  {
    name: 'validation-do-sample',
    severity: 'warning',
    check: ({ at, number, keys }) =>
      at(`${rollout}.val_kwargs.do_sample`) === false &&
      keys.has(`${rollout}.val_kwargs.do_sample`) &&
      number(`${rollout}.val_kwargs.temperature`) > 0
        ? `${rollout}.val_kwargs.do_sample is false with temperature ${number(`${rollout}.val_kwargs.temperature`)}: the V1 trainer reads the temperature alone, and samples. Set the temperature to 0 for greedy validation.`
        : null,
  },
  {
    name: 'greedy-validation-repeated',
    severity: 'warning',
    check: ({ number }) =>
      number(`${rollout}.val_kwargs.temperature`) <= 0 && number(`${rollout}.val_kwargs.n`) > 1
        ? `${rollout}.val_kwargs.n is ${number(`${rollout}.val_kwargs.n`)} with temperature 0: each test task is done that often with the same answer. Set n to 1, or the temperature to 1.`
        : null,
  },
  {
    name: 'beyond-context',
    severity: 'error',
    check: ({ number, run }) => {
      const longest = number('data.max_prompt_length') + number('data.max_response_length')
      return run.contextLength && longest > run.contextLength
        ? `data.max_prompt_length + max_response_length is ${longest}, and the model takes ${run.contextLength} tokens. Make the sum at most that.`
        : null
    },
  },
  {
    name: 'beyond-engine-length',
    severity: 'error',
    check: ({ at, number }) => {
      const limit = at(`${rollout}.max_model_len`)
      const longest = number('data.max_prompt_length') + number('data.max_response_length')
      return typeof limit === 'number' && limit < longest
        ? `${rollout}.max_model_len is ${limit}, and a conversation may have ${longest} tokens (data.max_prompt_length + max_response_length); the engine refuses the longer ones. Make it at least ${longest}.`
        : null
    },
  },
  {
    name: 'default-lengths',
    severity: 'warning',
    check: ({ keys }) =>
      keys.has('data.max_response_length')
        ? null
        : "data.max_response_length is verl's default of 512 tokens, which is for all turns of a rollout with their tool results; longer ones are cut. Set it to what your agent needs.",
  },
  {
    name: 'chunked-prefill-off',
    severity: 'warning',
    check: ({ at, number }) =>
      at(`${rollout}.enable_chunked_prefill`) === false &&
      number(`${rollout}.max_num_batched_tokens`) < number('data.max_prompt_length') + number('data.max_response_length')
        ? `${rollout}.enable_chunked_prefill is false and max_num_batched_tokens is ${number(`${rollout}.max_num_batched_tokens`)}, less than a conversation may have; the engine refuses those. Raise max_num_batched_tokens, or turn chunked prefill on.`
        : null,
  },
  {
    name: 'kl-coefficient-zero',
    severity: 'warning',
    check: ({ at, number }) =>
      at(`${actor}.use_kl_loss`) === true && number(`${actor}.kl_loss_coef`) === 0
        ? `${actor}.use_kl_loss is true with kl_loss_coef 0: the reference model is loaded and asked at every step for nothing. Set use_kl_loss to false.`
        : null,
  },
  {
    name: 'kl-twice',
    severity: 'warning',
    check: ({ at }) =>
      at(`${actor}.use_kl_loss`) === true && at('algorithm.use_kl_in_reward') === true
        ? `${actor}.use_kl_loss and algorithm.use_kl_in_reward are both true: the KL term counts twice. Set one to false.`
        : null,
  },
  {
    name: 'learning-rate',
    severity: 'warning',
    check: ({ number, config }) => {
      const rate = number(`${actor}.optim.lr`)
      return rate > 1e-4 && !config.settings.smoke
        ? `${actor}.optim.lr is ${rate}: models of a billion weights and more are trained with 1e-6 to 1e-5, and fall apart at this rate.`
        : null
    },
  },
  {
    name: 'learning-rate-zero',
    severity: 'error',
    check: ({ number, at }) =>
      number(`${actor}.optim.lr`) <= 0 && at('trainer.val_only') !== true
        ? `${actor}.optim.lr is ${number(`${actor}.optim.lr`)}: nothing would be learnt. Set it to 1e-6, or trainer.val_only to true.`
        : null,
  },
  {
    name: 'dual-clip',
    severity: 'error',
    check: ({ number }) =>
      number(`${actor}.clip_ratio_c`) <= 1
        ? `${actor}.clip_ratio_c is ${number(`${actor}.clip_ratio_c`)}; verl asks for more than 1. Leave it at 3.`
        : null,
  },
]
