import { createApi } from '../command/api.ts'
import { command, type Leaf } from '../command/command.ts'
import { findConnection } from '../command/profile.ts'
import { recordFlags } from '../command/record.ts'
import { writeBody } from '../command/stream.ts'
import type { Terminal } from '../terminal/terminal.ts'

export const openapi = (terminal: Terminal): Leaf =>
  command({
    about: "Print the API's machine-readable description",
    // It is JSON with and without --json, which every command that reads takes.
    args: recordFlags,
    async run(flags) {
      const { apiUrl } = findConnection(flags, terminal)
      const api = createApi({ apiUrl, apiToken: null }, fetch)
      await writeBody(await api.response({ path: '/v1/openapi.json' }), terminal)
    },
  })
