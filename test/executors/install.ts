import { installDebian } from '../support/install-debian.ts'

/** Spark runs on the Java of JAVA_HOME, or of PATH. */
export default function install(): void {
  if (!process.env['JAVA_HOME']) installDebian({ java: 'default-jre-headless' })
}
