/** Variables that a tool server inherits from us: those that programs need to start, and no secrets. */
const inherited = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'TERM',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'TMPDIR',
  'NODE_OPTIONS',
  // Windows
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATHEXT',
  'PROGRAMDATA',
  'PROGRAMFILES',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'USERNAME',
  'USERPROFILE',
  'WINDIR',
])

/** Variables of a child process: a clean set from `processEnvironment`, and those that the configuration declares. */
export function childEnvironment(
  declared: Readonly<Record<string, string>>,
  processEnvironment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const result: Record<string, string> = {}
  for (const [name, value] of Object.entries(processEnvironment)) {
    if (value !== undefined && inherited.has(name.toUpperCase())) result[name] = value
  }
  return Object.assign(result, declared)
}
