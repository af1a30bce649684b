import { shellText } from '../render/shell-text.ts'

/** Writes the overrides of a script to `overrides.txt`, one a line. `python3` is a function there, so verl does not start. */
const record = `bash -c 'python3() { printf "%s\\n" "$@" | grep = >&3 || :; }; export -f python3; bash "$0" 3>overrides.txt'`

/** The problem of a configuration that is a launch script, with the command that gets its overrides. */
export const scriptProblem = (shown: string): string =>
  [
    `this is a script, and AWorld Train runs no script to read it. Start it yourself with a python3 that only writes its overrides down (a script that starts it by exec, env, nohup or a path would start verl; change that line first):`,
    `  ${record} ${shellText(shown)}`,
    `Then pass them: config: readFileSync('overrides.txt', 'utf8').trim().split('\\n'). Variables that the script exports are yours to set.`,
  ].join('\n')
