/**
 * `install systemd|kubernetes|compose` prints what runs the executable where it is to run; `install keys` writes files.
 */
import { defineCommand } from 'citty'
import type { Terminal } from '../terminal/terminal.ts'

export const install = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Print a systemd unit, a Kubernetes manifest or a compose file, and make the keys it needs' },
    subCommands: {
      systemd: async () => (await import('./systemd.ts')).systemd(terminal),
      kubernetes: async () => (await import('./kubernetes.ts')).kubernetes(terminal),
      compose: async () => (await import('./compose.ts')).compose(terminal),
      keys: async () => (await import('./keys.ts')).keys(terminal),
    },
  })
