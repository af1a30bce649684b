import { readdir, readFile } from 'node:fs/promises'

/** Processes of this machine by their command and their variables, as text between zero bytes. */
export async function findProcesses(matches: (command: string, variables: string) => boolean): Promise<number[]> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const read = (name: string, file: string) => readFile(`/proc/${name}/${file}`, 'utf8').catch(() => '')
  const found = await Promise.all(names.map(async (name) => matches(await read(name, 'cmdline'), await read(name, 'environ'))))
  return names.filter((_, index) => found[index]).map(Number)
}
