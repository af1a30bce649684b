import type { ChildProcess } from 'node:child_process'
import type { Duplex } from 'node:stream'

/**
 * Arguments that run a command from process 1 of a jail. Process 1 ends with the command and when our end of a descriptor closes, so also
 * with this process, however that ends. The command cannot end process 1. It has all other descriptors, and its exit code is the jail's.
 */
export function withLifeline(fd: number, command: readonly string[]): string[] {
  return ['-c', `"$@" <&0 ${fd}<&- & read -r line <&${fd} & wait -n 2>/dev/null`, 'bash', ...command]
}

/** Closes our end once the process that represents the jail outside has ended. */
export function tieLifeline(child: ChildProcess, fd: number): void {
  const lifeline = child.stdio[fd] as Duplex
  child.once('exit', () => lifeline.destroy())
}
