import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../support/process-group.ts'
import { repository } from '../../support/run-cli.ts'

/** Lets `serve.yaml` of a run directory listen on a port that is free. */
export async function moveServe(path: string): Promise<number> {
  const port = await freePort()
  const file = join(path, 'serve.yaml')
  await writeFile(file, (await readFile(file, 'utf8')).replace('port: 8090', `port: ${port}`))
  return port
}

/** `aworld-train serve` as a person types it; resolves when it says where its channel is. */
export async function startServe(path: string, token: string, onOutput: (text: string) => void = () => {}): Promise<ChildProcess> {
  const child = spawn(process.execPath, [join(repository, 'packages/cli/src/main.ts'), 'serve', '--config', join(path, 'serve.yaml')], {
    env: { ...process.env, AWORLD_TRAIN_CHANNEL_TOKEN: token },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      onOutput(text)
      output += text
      if (output.includes('Ctrl-C ends')) resolve()
    })
  child.once('close', (code) => reject(new Error(`serve ended with ${code}:\n${output}`)))
  await promise
  return child
}

/** Steps that verl's file logger has written so far, of every start into this run directory. */
export function stepsDone(path: string): number[] {
  const folder = join(path, 'metrics')
  const files = existsSync(folder) ? readdirSync(folder) : []
  return files
    .flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n'))
    .filter((line) => line.endsWith('}'))
    .map((line) => (JSON.parse(line) as { step: number }).step)
    .filter((step) => step > 0)
}
