import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { workerInterpreter } from './worker-interpreter.ts'

it.each(['/my project/.venv/bin/python', "/it's/$HOME/python", '/a;b/(c)/python'])('has a shell read %s as one word', (python) => {
  const [override = ''] = workerInterpreter(python)
  const [path, quoted = ''] = override.split(/=(.*)/s)
  expect(path).toBe('++ray_kwargs.ray_init.runtime_env.py_executable')
  // Hydra reads a quote with a backslash, and backslashes before a quote in pairs.
  const value = quoted.slice(1, -1).replace(/(\\*)\1\\'/g, "$1'")
  expect(execFileSync('bash', ['-c', `printf %s ${value}`], { encoding: 'utf8' })).toBe(python)
})

it('leaves a path alone that a shell reads, and what is set already', () => {
  expect(workerInterpreter('/usr/bin/python3.11')).toEqual([])
  expect(workerInterpreter('/a b/python', ['++ray_kwargs.ray_init.runtime_env.py_executable=python3'])).toEqual([])
})
