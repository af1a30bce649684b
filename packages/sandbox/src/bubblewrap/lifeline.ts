import type { ChildProcess } from 'node:child_process'
import type { Duplex } from 'node:stream'

/**
 * Words that run a command from process 1 of a jail, which ends with the command and with our end of a descriptor: with this process, however
 * that ends. It is no process that the command could end. The command has all other descriptors, and its exit code is the jail's.
 */
export function withLifeline(fd: number, command: readonly string[]): string[] {
  return ['-c', `"$@" <&0 ${fd}<&- & read -r line <&${fd} & wait -n 2>/dev/null`, 'bash', ...command]
}

/** Closes our end once the process that stands for the jail outside of it has ended. */
export function tieLifeline(child: ChildProcess, fd: number): void {
  const lifeline = child.stdio[fd] as Duplex
  child.once('exit', () => lifeline.destroy())
}
