import { installDebian } from '../support/install-debian.ts'

export default () => installDebian({ bwrap: 'bubblewrap', ip: 'iproute2', '/usr/bin/python3': 'python3', setpriv: 'util-linux' })
