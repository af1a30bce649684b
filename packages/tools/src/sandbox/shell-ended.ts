/** What an answer says of a command that ended its own bash, such as `exit`. */
export const shellEnded =
  '[The shell ended. The next command starts a new one in /workspace, without the variables and functions of this one.]\n'
