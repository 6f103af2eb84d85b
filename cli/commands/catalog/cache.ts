/** `cache clear`: empties what gateways keep of answers. */
import { defineCommand } from 'citty'
import { recordFlags, sendRecord } from '../../command/record.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const cacheCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Manage the answers that policies of the kind answer-cache keep' },
    subCommands: { clear: async () => clear(terminal) },
  })

const clear = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Clear the answers that gateways keep, of one model or of all' },
    args: {
      model: { type: 'string', description: "The model's id, as callers name it; absent: all", valueHint: 'ID' },
      ...recordFlags,
    },
    async run({ args }) {
      const { model } = args
      const body = model === undefined ? {} : { model }
      await sendRecord({ method: 'POST', path: '/v1/catalog/cache/clear', body }, args, terminal)
    },
  })
