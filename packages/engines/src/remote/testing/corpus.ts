import { readFileSync } from 'node:fs'
import type { Route } from './http-server.ts'

export interface Recording {
  readonly name: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly request?: unknown
  readonly status: number
  readonly contentType: string
  readonly body: string
}

export type Corpus = 'vllm-0.32' | 'sglang-source'

/** Reads answers of a real server by their names. */
export function readCorpus(corpus: Corpus): ReadonlyMap<string, Recording> {
  const file = new URL(`../../../corpus/${corpus}.json`, import.meta.url)
  const { recordings } = JSON.parse(readFileSync(file, 'utf8')) as { recordings: readonly Recording[] }
  return new Map(recordings.map((recording) => [recording.name, recording]))
}

/** Answers like the recorded server: with the first recording of a path, or the one that was chosen for it. */
export function replay(recordings: ReadonlyMap<string, Recording>, chosen: () => string | undefined): Route {
  return ({ path, method }, response) => {
    const named = recordings.get(chosen() ?? '')
    const found =
      named?.path.split('?')[0] === path
        ? named
        : [...recordings.values()].find((each) => each.path.split('?')[0] === path && each.method === method)
    if (!found) return void response.writeHead(404).end()
    response.writeHead(found.status, { 'content-type': found.contentType }).end(found.body)
  }
}
