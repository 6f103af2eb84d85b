/** `gateway` alone serves a gateway. A gateway process loads nothing of the commands about records. */
import { defineCommand } from 'citty'
import type { Terminal } from '../../terminal/terminal.ts'

export const gatewayCommands = (terminal: Terminal) => {
  const records = async () => (await import('./gateway-records.ts')).gatewayRecords(terminal)
  return defineCommand({
    meta: { description: 'Serve a gateway; manage the records of gateways' },
    default: 'serve',
    subCommands: {
      serve: async () => (await import('../../processes/serve.ts')).gatewayCommand(terminal),
      list: async () => (await records()).list(),
      get: async () => (await records()).get(),
      create: async () => (await records()).create(),
      update: async () => (await records()).update(),
      delete: async () => (await records()).delete(),
      bounds: async () => (await records()).bounds(),
    },
  })
}
