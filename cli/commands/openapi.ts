import { defineCommand } from 'citty'
import { createApi } from '../command/api.ts'
import { findConnection } from '../command/profile.ts'
import { recordFlags } from '../command/record.ts'
import { writeBody } from '../command/stream.ts'
import type { Terminal } from '../terminal/terminal.ts'

export const openapi = (terminal: Terminal) =>
  defineCommand({
    meta: { description: "Print the API's machine-readable description" },
    // It is JSON with and without --json, which every command that reads takes.
    args: recordFlags,
    async run({ args }) {
      const { apiUrl } = findConnection(args, terminal)
      const api = createApi({ apiUrl, apiToken: null }, fetch)
      await writeBody(await api.response({ path: '/v1/openapi.json' }), terminal)
    },
  })
