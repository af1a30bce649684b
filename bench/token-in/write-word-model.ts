import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ModelDescription } from '@aworld-train/core'

const special = ['<|im_start|>', '<|im_end|>', '<|endoftext|>']
const callTags = ['<tool_call>', '</tool_call>']
const syllables = 'ba co di fu ga he jo ka li mo na pe qui ro su te va wi xo yu'.split(' ')

/** Words of one to three syllables: with the space before it, each is one token of the model. */
export const words: readonly string[] = syllables.flatMap((first) =>
  syllables.flatMap((second, index) => [first, first + second, first + second + syllables[(index * 7) % syllables.length]]),
)

/**
 * Writes a Hugging Face folder without weights whose byte-level BPE has a token for each of `words`: a text of them has about
 * as many characters a token as English has under a tokenizer of 150,000.
 */
export async function writeWordModel(directory: string, template: string, contextLength: number): Promise<ModelDescription> {
  const pieces = byteCharacters()
  const vocabulary = new Map(pieces.map((piece, id) => [piece, id]))
  const merges: string[] = []
  for (const word of new Set(words)) {
    let left = 'Ġ'
    for (const letter of word) {
      if (!vocabulary.has(left + letter)) {
        vocabulary.set(left + letter, vocabulary.size)
        merges.push(`${left} ${letter}`)
      }
      left += letter
    }
  }
  const first = vocabulary.size
  const tokens = [...special, ...callTags]
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true }
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: tokens.map((content, index) => ({
      id: first + index,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: index < special.length,
    })),
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      fuse_unk: false,
      byte_fallback: false,
      vocab: Object.fromEntries(vocabulary),
      merges,
    },
  }
  const tokenizerConfig = { chat_template: template, eos_token: '<|im_end|>', model_max_length: contextLength }
  const stopTokenIds = [first + special.indexOf('<|im_end|>')]
  await mkdir(directory, { recursive: true })
  const files = {
    'tokenizer.json': tokenizer,
    'tokenizer_config.json': tokenizerConfig,
    'generation_config.json': { eos_token_id: stopTokenIds },
  }
  await Promise.all(Object.entries(files).map(([file, content]) => writeFile(join(directory, file), JSON.stringify(content))))
  return { name: 'words', directory, contextLength, vocabularySize: first + tokens.length, stopTokenIds }
}

/** The characters that stand for bytes in GPT-2's byte-level vocabularies, by byte. */
function byteCharacters(): string[] {
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173)
    return String.fromCharCode(printable ? byte : next++)
  })
}
