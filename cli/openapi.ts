import { createApi } from './api.ts'
import { command, type Leaf } from './command.ts'
import { connectionFlags, findConnection } from './profile.ts'
import { writeBody } from './stream.ts'
import type { Terminal } from './terminal.ts'

export const openapi = (terminal: Terminal): Leaf =>
  command({
    about: "Print the API's machine-readable description",
    args: connectionFlags,
    async run(flags) {
      const { apiUrl } = findConnection(flags, terminal)
      const api = createApi({ apiUrl, apiToken: null }, fetch)
      await writeBody(await api.response({ path: '/v1/openapi.json' }), terminal)
    },
  })
