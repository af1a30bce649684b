import { TrainError } from '@aworld-train/core'
import { byteAlphabet } from './byte-alphabet.ts'
import { type TokenizerJson, toTokenizerJson, wordPattern } from './tokenizer-json.ts'

export interface TrainBpeOptions {
  /** Number of all tokens: 256 bytes, merges and special tokens. There are fewer if the texts have no more pairs. */
  readonly vocabularySize: number
  readonly specialTokens: readonly string[]
  /** Pairs that occur less often are not merged. Default 2. */
  readonly minFrequency?: number | undefined
}

/**
 * Trains a byte-level BPE (Sennrich et al., 2016) on `texts`. The most frequent pair is merged first; among equally frequent ones, that of
 * lower ids. Throws CONFIG_INVALID if `vocabularySize` has no room for the bytes and special tokens.
 */
export function trainBpe(texts: Iterable<string>, { vocabularySize, specialTokens, minFrequency = 2 }: TrainBpeOptions): TokenizerJson {
  const vocabulary = byteAlphabet()
  const target = vocabularySize - specialTokens.length
  if (!(target >= vocabulary.length)) {
    const least = vocabulary.length + specialTokens.length
    throw new TrainError(
      'CONFIG_INVALID',
      `A vocabulary of ${vocabularySize} tokens has no room for 256 bytes and the special tokens; use at least ${least}.`,
    )
  }
  const pairs = new PairCounts(countWords(texts, specialTokens))
  const merges: [string, string][] = []
  const ids = new Map(vocabulary.map((token, id) => [token, id]))
  while (vocabulary.length < target) {
    const best = pairs.mostFrequent(minFrequency)
    if (!best) break
    const [left, right] = best
    const token = vocabulary[left]! + vocabulary[right]!
    let id = ids.get(token)
    if (id === undefined) {
      id = vocabulary.length
      vocabulary.push(token)
      ids.set(token, id)
    }
    merges.push([vocabulary[left]!, vocabulary[right]!])
    pairs.merge(left, right, id)
  }
  return toTokenizerJson({
    vocabulary,
    merges,
    addedTokens: specialTokens.map((content) => ({ content, special: true })),
    splitWords: true,
  })
}

function countWords(texts: Iterable<string>, specialTokens: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  const words = new RegExp(wordPattern, 'gu')
  for (const text of texts) {
    let parts = [text]
    for (const special of specialTokens) parts = parts.flatMap((part) => part.split(special))
    for (const part of parts) for (const word of part.match(words) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  return counts
}

interface Word {
  ids: number[]
  readonly count: number
}

interface Pair {
  readonly left: number
  readonly right: number
  count: number
  /** Indexes of words that hold it, or held it. */
  readonly words: Set<number>
}

/** Counts of neighbouring ids over weighted words, updated while pairs are merged. */
class PairCounts {
  readonly #words: Word[]
  readonly #pairs = new Map<number, Pair>()

  constructor(words: ReadonlyMap<string, number>) {
    const encoder = new TextEncoder()
    this.#words = Array.from(words, ([word, count]) => ({ ids: Array.from(encoder.encode(word)), count }))
    for (let index = 0; index < this.#words.length; index++) this.#count(index, 1)
  }

  mostFrequent(minFrequency: number): readonly [number, number] | null {
    let best: Pair | null = null
    for (const pair of this.#pairs.values()) if (pair.count >= minFrequency && (!best || precedes(pair, best))) best = pair
    return best && [best.left, best.right]
  }

  merge(left: number, right: number, merged: number): void {
    const pair = this.#pairs.get(pairKey(left, right))!
    for (const index of pair.words) {
      const word = this.#words[index]!
      this.#count(index, -1)
      const ids: number[] = []
      for (let i = 0; i < word.ids.length; i++) {
        if (word.ids[i] === left && word.ids[i + 1] === right) {
          ids.push(merged)
          i++
        } else ids.push(word.ids[i]!)
      }
      word.ids = ids
      this.#count(index, 1)
    }
    this.#pairs.delete(pairKey(left, right))
  }

  #count(index: number, sign: 1 | -1): void {
    const { ids, count } = this.#words[index]!
    for (let i = 0; i + 1 < ids.length; i++) {
      const left = ids[i]!
      const right = ids[i + 1]!
      const key = pairKey(left, right)
      let pair = this.#pairs.get(key)
      if (!pair) {
        pair = { left, right, count: 0, words: new Set() }
        this.#pairs.set(key, pair)
      }
      pair.count += sign * count
      pair.words.add(index)
    }
  }
}

const pairKey = (left: number, right: number): number => left * 0x200000 + right

const precedes = (a: Pair, b: Pair): boolean =>
  a.count !== b.count ? a.count > b.count : a.left !== b.left ? a.left < b.left : a.right < b.right
