/** `install systemd|kubernetes|compose` prints what runs the executable where it is to run; `install keys` writes files. */
import type { Group } from './command.ts'
import type { Terminal } from './terminal.ts'

export const install = (terminal: Terminal): Group => ({
  about: 'Print a systemd unit, a Kubernetes manifest or a compose file, and make the keys it needs',
  commands: {
    systemd: async () => (await import('./install-systemd.ts')).systemd(terminal),
    kubernetes: async () => (await import('./install-kubernetes.ts')).kubernetes(terminal),
    compose: async () => (await import('./install-compose.ts')).compose(terminal),
    keys: async () => (await import('./install-keys.ts')).keys(terminal),
  },
})
