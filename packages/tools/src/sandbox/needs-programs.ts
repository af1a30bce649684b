/** What is said of programs in the tier that runs none, with Debian's packages that they need beside bubblewrap. */
export const needsPrograms = (what: string, debianPackages: readonly string[] = []): string =>
  `${what} does not run in the tier "simulated"; the operator starts the environment on Linux with bubblewrap (apt-get install ${['bubblewrap', ...debianPackages].join(' ')}).`
