import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ProblemList } from './problem-list.ts'

/** Finds the shards of one dataset in a folder: files of a format whose names differ only in their numbers, ordered by these. */
export async function findShards(folder: string, isFormat: (name: string) => boolean, problems: ProblemList): Promise<string[]> {
  const names = (await readdir(folder)).filter(isFormat).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  const kinds = new Set(names.map((name) => name.replace(/\d+/g, '#')))
  if (kinds.size > 1) {
    problems.add(
      `the folder holds files that are no shards of one dataset (${names.slice(0, 4).join(', ')}${names.length > 4 ? ', …' : ''}); name one, or list those that belong together.`,
    )
    return []
  }
  const total = Number(/-of-(\d+)/.exec(names[0] ?? '')?.[1] ?? names.length)
  if (total !== names.length) problems.add(`the folder holds ${names.length} of ${total} shards; add the others.`)
  return names.map((name) => join(folder, name))
}
