/**
 * With USE_HF, names of models are looked up in the user's cache of Hugging Face. Without it, each is requested from ModelScope over the
 * network.
 */
export const swiftVariables = { USE_HF: '1', TRL_EXPERIMENTAL_SILENCE: '1', TOKENIZERS_PARALLELISM: 'false' } as const
