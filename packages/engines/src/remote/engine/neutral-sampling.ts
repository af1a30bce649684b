/**
 * Members of a Chat Completions request that undo every change of the sampling in a client's body, because the trainer decides the
 * sampling. A seed would make the samples of a group equal. vLLM and SGLang know all of these members.
 */
export const neutralSampling = {
  seed: null,
  min_p: 0,
  min_tokens: 0,
  ignore_eos: false,
  frequency_penalty: 0,
  presence_penalty: 0,
  repetition_penalty: 1,
  logit_bias: null,
} as const
