import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ModelDescription } from '@aworld-train/core'

export interface TinyModelOptions {
  readonly directory: string
  /** The chat template, in Jinja. */
  readonly template: string
  readonly name?: string | undefined
  /** Default 4096 tokens. */
  readonly contextLength?: number | undefined
}

const specialTokens = ['<|im_start|>', '<|im_end|>', '<|endoftext|>']

/** The 256 characters that stand for bytes in GPT-2's byte-level vocabularies, by byte. */
function byteCharacters(): string[] {
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173)
    return String.fromCharCode(printable ? byte : next++)
  })
}

/**
 * Writes the files of a Hugging Face folder that a chat needs, without weights: a tokenizer of one id a byte, ids 256 to 258 for ChatML's
 * special tokens, and the template. Stop token: `<|im_end|>`, 257.
 */
export async function writeTinyModel({
  directory,
  template,
  name = 'tiny',
  contextLength = 4096,
}: TinyModelOptions): Promise<ModelDescription> {
  const vocabulary = Object.fromEntries(byteCharacters().map((character, byte) => [character, byte]))
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true }
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: specialTokens.map((content, index) => ({
      id: 256 + index,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: { type: 'BPE', dropout: null, unk_token: null, fuse_unk: false, byte_fallback: false, vocab: vocabulary, merges: [] },
  }
  const tokenizerConfig = {
    tokenizer_class: 'PreTrainedTokenizerFast',
    chat_template: template,
    eos_token: '<|im_end|>',
    pad_token: '<|endoftext|>',
    model_max_length: contextLength,
  }
  const config = { model_type: 'qwen3', vocab_size: 259, max_position_embeddings: contextLength, eos_token_id: 257 }
  await mkdir(directory, { recursive: true })
  const files = { 'tokenizer.json': tokenizer, 'tokenizer_config.json': tokenizerConfig, 'config.json': config }
  await Promise.all(Object.entries(files).map(([file, content]) => writeFile(join(directory, file), JSON.stringify(content))))
  return { name, directory, contextLength, vocabularySize: 259, stopTokenIds: [257] }
}
